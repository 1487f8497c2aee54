// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How far a set of runs is, on stderr.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

#include "train/progress.hpp"

namespace scalewise::experiment {

/// Counts runs of different cost as they end, on any thread.
class RunProgress {
 public:
  RunProgress(long runs, double cost, bool quiet) : runs_(runs), cost_(cost), quiet_(quiet) {
    show();
  }
  ~RunProgress() {
    if (!quiet_ && terminal_) std::fputs("\r\x1b[K", stderr);
  }
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;

  void ended(double cost) {
    const std::lock_guard lock(mutex_);
    ++done_;
    spent_ += cost;
    show();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void show() {
    if (quiet_ || !(terminal_ || done_ == runs_)) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    const auto left = static_cast<long>(spent_ > 0 ? seconds * (cost_ - spent_) / spent_ + 0.5 : 0);
    std::fprintf(stderr, "%s%ld of %ld runs, %.0f s", terminal_ ? "\r\x1b[K" : "", done_, runs_,
                 seconds);
    if (terminal_ && spent_ > 0) std::fprintf(stderr, ", %ld:%02ld left", left / 60, left % 60);
    if (!terminal_) std::fputc('\n', stderr);
    std::fflush(stderr);
  }

  std::mutex mutex_;
  long runs_;
  double cost_;
  bool quiet_;
  bool terminal_ = train::Progress::is_terminal();
  long done_ = 0;
  double spent_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace scalewise::experiment
