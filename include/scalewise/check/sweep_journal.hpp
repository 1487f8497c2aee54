// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/core/error.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/io/read_file.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/file.h>
#endif

namespace scalewise::check {

/// The finished runs of a sweep in a file: a line of JSON per run, and the settings in the first.
/// A run is on disk when append() returns. A last line that a crash has torn is cut when the file
/// is opened again. Without a path, runs are kept in memory only.
class SweepJournal {
 public:
  /// All that a run depends on beside size, rate and seed.
  using Settings = std::vector<std::pair<std::string, std::string>>;

  /// Begins a journal, or goes on with one.
  /// Throws:   InvalidInput for a file that is no journal, has other settings, is damaged before
  ///           its last line, is being written by another process, or cannot be written.
  SweepJournal(std::string path, const Settings& settings) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::error_code error;
    if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error)) {
      refuse("(no regular file)", "a file that this sweep may write");
    }
    file_.reset(std::fopen(path_.c_str(), "ab"));
    if (file_ == nullptr) {
      refuse("(cannot be written)", "a file that can be written",
             "is the folder there, and may you write to it?");
    }
#if defined(__unix__) || defined(__APPLE__)
    if (::flock(::fileno(file_.get()), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      refuse("(in use)", "a file that no other process writes");
    }
#endif
    const std::string header = header_line(settings);
    const std::string text = read_file(path_, std::numeric_limits<std::size_t>::max());
    if (std::string_view(header).starts_with(text) && text.size() < header.size()) {
      cut(0);  // new, or torn at the very start
      write(header);
      scalewise::detail::flush_folder(std::filesystem::path(path_).parent_path().string());
    } else {
      load(text, settings);
    }
  }

  /// In the order in which they finished.
  const std::vector<RateRun>& runs() const { return runs_; }

  /// Adds a run. Threads may call it at the same time.
  /// Throws:   InvalidInput when it cannot be written.
  void append(const RateRun& run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    nlohmann::ordered_json line{{"size", run.size}, {"octave", run.octave}, {"seed", run.seed}};
    line["loss"] = std::isfinite(run.loss) ? nlohmann::ordered_json(run.loss) : nullptr;
    if (file_ != nullptr) write(line.dump() + "\n");
    runs_.push_back(run);
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  [[noreturn]] void refuse(const std::string& value, const std::string& expectation,
                           const std::string& hint = {}) const {
    throw InvalidInput(path_, value, expectation, hint);
  }

  static std::string header_line(const Settings& settings) {
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (const auto& [name, value] : settings) values[name] = value;
    const nlohmann::ordered_json header{{"schema", "scalewise.sweep/1"}, {"settings", values}};
    return header.dump() + "\n";
  }

  void write(std::string_view line) {
    const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
    if (!written || !flush_to_disk(file_.get())) {
      refuse("(not all was written)", "room for every run", "is the disk full?");
    }
  }

  void cut(std::size_t size) const {
    std::error_code error;
    std::filesystem::resize_file(path_, size, error);
    if (error) refuse("(cannot be cut)", "a file that can be written", error.message());
  }

  void load(std::string_view text, const Settings& settings) {
    std::size_t begin = text.find('\n') + 1;
    if (begin == 0) refuse("(another kind of file)", "the journal of a sweep");
    check_header(text.substr(0, begin), settings);
    for (long number = 2; begin < text.size(); ++number) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string_view::npos) break;
      try {
        add(text.substr(begin, end - begin), "line " + std::to_string(number));
      } catch (const InvalidInput& bad) {
        if (end + 1 == text.size()) break;  // lines before the last were on disk before it began
        refuse("(damaged)", "a run in every line", bad.what());
      }
      begin = end + 1;
    }
    if (begin < text.size()) cut(begin);
  }

  void check_header(std::string_view line, const Settings& settings) const {
    nlohmann::json json;
    try {
      json = parse_json(line, path_);
    } catch (const InvalidInput&) {
      refuse("(another kind of file)", "the journal of a sweep");
    }
    const JsonReader header(json, path_);
    if (!header.has("schema") || header.at("schema").string() != "scalewise.sweep/1") {
      refuse("(another kind of file)", "the journal of a sweep");
    }
    const JsonReader saved = header.at("settings");
    for (const auto& [name, value] : settings) {
      const std::string old = saved.has(name) ? saved.at(name).string() : "(missing)";
      if (old != value) {
        throw InvalidInput(name, value, old + ", as in " + path_,
                           "another folder for another experiment");
      }
    }
    std::vector<std::string> names;
    names.reserve(settings.size());
    for (const auto& setting : settings) names.push_back(setting.first);
    saved.only(names);
  }

  void add(std::string_view line, const std::string& name) {
    const nlohmann::json json = parse_json(line, name);
    const JsonReader reader(json, name);
    reader.only({"size", "octave", "seed", "loss"});
    const bool diverged = reader.at("loss").is_null();
    RateRun run{.size = reader.at("size").integer(),
                .octave = reader.at("octave").integer(),
                .seed = reader.at("seed").integer()};
    run.loss = diverged ? std::numeric_limits<double>::infinity() : reader.at("loss").number();
    runs_.push_back(run);
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<RateRun> runs_;
  std::mutex mutex_;
};

}  // namespace scalewise::check
