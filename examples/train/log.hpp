// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The log: a CSV file with a row per step.
#pragma once

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "scalewise/io/file.hpp"
#include "scalewise/io/read_file.hpp"
#include "train/data.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// One row. Step 0 has a score only, and most steps have none.
struct LogRow {
  long step = 0;
  double loss = 0;
  std::optional<Score> score = {};
  double rate = 0;
  double gradient_norm = 0;
  double seconds = 0;
};

/// Rows reach the system one by one, and the disk with flush(). Without a path it does nothing.
class Log {
 public:
  Log(std::string path, const std::string& score_name)
      : path_(std::move(path)),
        header_("step,loss,validation_nats," + score_name + ",rate,gradient_norm,seconds\n") {}

  /// Begins a new file.
  void start() {
    if (path_.empty()) return;
    write_file(path_, header_);
    open();
  }

  /// Takes the file up again behind the row of `step`, cutting later ones, and returns the seconds
  /// up to there. A file that is not there yet begins with the next step.
  /// Throws:   InvalidInput for a file that is no such log or ends before `step`.
  double resume(long step) {
    if (path_.empty()) return 0;
    if (!std::filesystem::exists(path_)) {
      start();
      return 0;
    }
    double seconds = 0;
    if (std::filesystem::is_regular_file(path_)) {
      const std::string text = read_file(path_, std::numeric_limits<std::size_t>::max());
      const std::size_t end = end_of_row(text, step);
      const std::string_view kept = std::string_view(text).substr(0, end);
      const std::size_t comma = kept.rfind(',') + 1;
      std::from_chars(kept.data() + comma, kept.data() + kept.size(), seconds);
      if (end < text.size()) write_file(path_, kept);
    }
    open();
    return seconds;
  }

  void write(const LogRow& row) {
    if (file_ == nullptr) return;
    std::string line = std::to_string(row.step) + ',';
    if (row.step > 0) line += text_of(row.loss);
    line += ',' + (row.score ? text_of(row.score->nats) + ',' + text_of(row.score->score) : ",");
    line += ',';
    if (row.step > 0)
      line += text_of(row.rate) + ',' + text_of(row.gradient_norm);
    else
      line += ',';
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), ",%.3f\n", row.seconds);
    line += seconds;
    const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
    if (!written || std::fflush(file_.get()) != 0) lost();
  }

  void flush() {
    if (file_ != nullptr && !flush_to_disk(file_.get())) lost();
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void open() {
    file_.reset(std::fopen(path_.c_str(), "ab"));
    if (file_ == nullptr) lost();
  }

  [[noreturn]] void lost() const {
    throw InvalidInput("--log", path_, "a file that takes all rows", "is the disk full?");
  }

  /// Where the row of a step ends.
  std::size_t end_of_row(const std::string& text, long step) const {
    const auto refuse = [&](const std::string& expectation) {
      throw InvalidInput("--log", path_, expectation, "give another name to begin a new log");
    };
    if (!text.starts_with(header_)) refuse("the log of this run");
    const std::string wanted = "\n" + std::to_string(step) + ",";
    const std::size_t begin = text.find(wanted);
    const std::size_t end = begin == std::string::npos ? begin : text.find('\n', begin + 1);
    if (end == std::string::npos) {
      refuse("rows up to step " + std::to_string(step) + ", where the checkpoint is");
    }
    return end + 1;
  }

  std::string path_;
  std::string header_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace scalewise::train
