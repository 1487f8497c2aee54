// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The log: a CSV file with a row per step.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/files/bytes.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/files/lock.hpp"
#include "scalewise/files/read_file.hpp"
#include "train/batches.hpp"
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

/// Rows reach the system one by one, and the disk with flush(). A fingerprint of the rows, seconds
/// aside, tells later whether a file is the log of this run. Without a path it does nothing.
class Log {
 public:
  Log(std::string path, const std::string& score_name)
      : path_(std::move(path)),
        header_("step,loss,validation_nats," + score_name + ",rate,gradient_norm,seconds\n") {}

  /// Begins a new file.
  void start() {
    if (path_.empty()) return;
    files::write_file(path_, header_);
    open();
  }

  /// Notes for the checkpoint on the rows so far.
  std::vector<files::Setting> notes() const {
    if (path_.empty()) return {};
    return {{"log begins", std::to_string(begin_)}, {"log rows", rows_}};
  }

  /// Throws:   InvalidInput for a note that notes() does not write.
  void recall(const std::vector<files::Setting>& notes) {
    for (const auto& [name, value] : notes) {
      if (name == "log begins") {
        begin_ = number_of<long>(name, value, 0, std::numeric_limits<long>::max(), "a step");
      } else if (name == "log rows") {
        rows_ = value;
      }
    }
  }

  /// Whether there is a file to continue.
  bool has_rows() const {
    return std::filesystem::exists(path_) &&
           (!std::filesystem::is_regular_file(path_) || text() != header_);
  }

  /// Begins a new file in the middle of a run, after `step`.
  void start_after(long step) {
    begin_ = step + 1;
    rows_.clear();
    start();
  }

  /// Resumes the file after the row of `step`, cutting later ones, and returns the seconds
  /// up to there.
  /// Requires: recall() has been called.
  /// Throws:   InvalidInput for a file that is no such log, ends before `step`, or has other rows
  ///           up to there than the checkpoint was saved with.
  double resume(long step) {
    double seconds = 0;
    if (std::filesystem::is_regular_file(path_)) {
      const std::string old = text();
      const std::size_t end = end_of_row(old, step);
      const std::string_view kept = std::string_view(old).substr(0, end);
      if (rows_of(kept.substr(header_.size())) != rows_) {
        refuse("the rows up to step " + std::to_string(step) +
               " that the checkpoint was saved with");
      }
      if (end > header_.size()) {
        const std::string_view last = kept.substr(0, end - 1);
        seconds =
            number_of<double>("--log " + path_, last.substr(last.rfind(',') + 1), 0, 1e15,
                              "seconds at the end of the row of step " + std::to_string(step));
      }
      if (end < old.size()) files::write_file(path_, kept);
    }
    open();
    return seconds;
  }

  void write(const LogRow& row) {
    if (file_ == nullptr) return;
    std::string line = std::to_string(row.step) + ',';
    if (row.step > 0) line += numeric::exact_text(row.loss);
    line += ',' + (row.score ? numeric::exact_text(row.score->nats) + ',' +
                                   numeric::exact_text(row.score->score)
                             : ",");
    line += ',';
    if (row.step > 0)
      line += numeric::exact_text(row.rate) + ',' + numeric::exact_text(row.gradient_norm);
    else
      line += ',';
    rows_ = with_row(rows_, line);
    line += fmt::format(",{:.3f}\n", row.seconds);
    const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
    if (!written || std::fflush(file_.get()) != 0) lost();
  }

  void flush() {
    if (file_ != nullptr && !files::flush_to_disk(file_.get())) lost();
  }

 private:
  void open() {
    file_.reset(std::fopen(path_.c_str(), "ab"));
    if (file_ == nullptr) lost();
  }

  [[noreturn]] void lost() const {
    throw InvalidInput("--log", path_, "a file that takes all rows", "is the disk full?");
  }

  [[noreturn]] void refuse(const std::string& expectation) const {
    throw InvalidInput("--log", path_, expectation, "give another name to begin a new log");
  }

  std::string text() const {
    return files::read_file(path_, std::numeric_limits<std::size_t>::max());
  }

  /// The fingerprint of rows and one more, without its seconds.
  static std::string with_row(const std::string& rows, std::string_view row) {
    return files::fingerprint(rows + std::string(row));
  }

  /// The fingerprint of whole lines.
  static std::string rows_of(std::string_view lines) {
    std::string rows;
    while (!lines.empty()) {
      const std::size_t end = lines.find('\n');
      const std::string_view line = lines.substr(0, end);
      rows = with_row(rows, line.substr(0, line.rfind(',')));
      lines.remove_prefix(end + 1);
    }
    return rows;
  }

  /// Where the row of a step ends, or the header when the log begins after that step.
  std::size_t end_of_row(const std::string& text, long step) const {
    if (!text.starts_with(header_)) refuse("the log of this run");
    if (begin_ > step) {
      const std::string_view later = std::string_view(text).substr(header_.size());
      if (!later.empty() && !later.starts_with(std::to_string(begin_) + ",")) {
        refuse("a log that begins with step " + std::to_string(begin_) +
               ", as the checkpoint says");
      }
      return header_.size();
    }
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
  long begin_ = 0;    // step of the first row
  std::string rows_;  // fingerprint of the rows
  files::OpenFile file_;
};

}  // namespace scalewise::train
