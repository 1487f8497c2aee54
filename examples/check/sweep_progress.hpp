// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How far a sweep has come, on stderr.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <string>

#include "train/progress.hpp"

namespace scalewise::experiment {

/// Counts runs, and tells the time left from what they cost: one of a wide model takes as long as
/// many of narrow ones. Threads may call it at the same time.
class SweepProgress {
 public:
  explicit SweepProgress(bool quiet) : quiet_(quiet), terminal_(train::is_terminal()) {}
  ~SweepProgress() { clear(); }
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  /// More to do; `cost` in any unit.
  void plan(long runs, double cost) {
    runs_ += runs;
    left_ += cost;
  }

  void finished(const std::string& run, double loss, double cost) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    left_ -= cost;
    spent_ += cost;
    if (quiet_) return;
    const auto now = Clock::now();
    const std::chrono::duration<double> wait(terminal_ ? 0.1 : 30);
    if (done_ < runs_ && now - shown_ < wait) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto left = static_cast<long>(seconds * left_ / spent_ + 0.5);
    char line[200];
    std::snprintf(line, sizeof(line), "%ld/%ld runs  %s: loss %.4g  %ld:%02ld left", done_, runs_,
                  run.c_str(), loss, left / 60, left % 60);
    std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", line);
    std::fflush(stderr);
    visible_ = terminal_;
  }

  /// A line that stays.
  void say(const std::string& text) {
    if (quiet_) return;
    clear();
    std::fprintf(stderr, "%s\n", text.c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;

  void clear() {
    if (visible_) std::fputs("\r\x1b[K", stderr);
    visible_ = false;
  }

  bool quiet_;
  bool terminal_;
  bool visible_ = false;
  long done_ = 0;
  long runs_ = 0;
  double left_ = 0;
  double spent_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  std::mutex mutex_;
};

}  // namespace scalewise::experiment
