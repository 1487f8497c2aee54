// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How long runs take, and how many of them a budget of time allows.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "scalewise/check/sweep.hpp"
#include "scalewise/numeric/jobs.hpp"

namespace scalewise::experiment {

/// The time since it was made and the mean time of a run of each size, measured by this process.
class RunTimes {
 public:
  using Clock = std::chrono::steady_clock;

  double elapsed() const { return seconds_since(start_); }

  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /// Threads may call it at the same time.
  void add(long size, double seconds) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++runs_[size];
    seconds_[size] += seconds;
  }

  /// Of a run of this size; 0 if none was made.
  double seconds(long size) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto runs = runs_.find(size);
    return runs == runs_.end() ? 0 : seconds_.at(size) / static_cast<double>(runs->second);
  }

  /// Of all these runs, on all threads.
  double seconds(const std::vector<check::SweepTask>& tasks) const {
    double sum = 0;
    for (const check::SweepTask& task : tasks) sum += seconds(task.size);
    return sum / numeric::thread_count();
  }

 private:
  Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::map<long, long> runs_;
  std::map<long, double> seconds_;
};

}  // namespace scalewise::experiment
