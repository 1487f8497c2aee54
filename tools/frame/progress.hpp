// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How far a program is and how long it will take, on stderr: one line that is rewritten on a
// terminal, elsewhere a line every 30 seconds.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace scalewise::frame {

/// Silences every Progress: the variable of the option --quiet.
inline bool quiet = false;

/// Whether this process makes one run of another command, which has said what there is to say.
inline bool one_of_many = false;

/// Prints a line on stderr: once, however often it is said and on whatever thread, and not in one of many.
void say_once(const std::string& line);

/// Counts units of work as they are done, on any thread.
class Progress {
 public:
  /// `all` units named `what`, such as "runs". Where they differ in cost, `cost` is that of all. An earlier
  /// process did `before`, at a speed that is not known.
  Progress(std::string what, long all, double cost = 0, long before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more is done, at its cost; `note` is shown next to the count.
  /// Returns:  false when the program was asked to stop.
  bool done(double cost = 1, const std::string& note = {});

  /// So many are done in all, where they cost alike.
  bool at(long count, const std::string& note = {});

  /// A line that stays.
  void say(const std::string& line);

  long count() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool show(const std::string& note);
  void clear();

  std::mutex mutex_;
  std::string what_;
  long all_, done_;
  double cost_, spent_, before_;
  bool visible_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace scalewise::frame
