// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <utility>

#include "frame/signals.hpp"

namespace scalewise::frame {

void say_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (!one_of_many && said.insert(line).second) fmt::print(stderr, "{}\n", line);
}

Progress::Progress(std::string what, long all, double cost, long before)
    : what_(std::move(what)),
      all_(all),
      done_(before),
      cost_(cost > 0 ? cost : static_cast<double>(all)),
      spent_(static_cast<double>(before)),
      before_(spent_) {}

Progress::~Progress() { clear(); }

bool Progress::done(double cost, const std::string& note) {
  const std::lock_guard lock(mutex_);
  ++done_;
  spent_ += cost;
  return show(note);
}

bool Progress::at(long count, const std::string& note) {
  const std::lock_guard lock(mutex_);
  done_ = count;
  spent_ = static_cast<double>(count);
  return show(note);
}

void Progress::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (quiet) return;
  clear();
  fmt::print(stderr, "{}\n", line);
}

bool Progress::show(const std::string& note) {
  if (stop_requested() != 0) return false;
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const auto now = Clock::now();
  if (quiet || now - shown_ < std::chrono::duration<double>(terminal ? 0.1 : 30)) return true;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double spent = spent_ - before_;
  const auto left = static_cast<long>(spent > 0 ? seconds * (cost_ - spent_) / spent + 0.5 : 0);
  fmt::print(stderr, "{}{} of {} {}{}{}, {:.0f} s, {}:{:02} left{}", terminal ? "\r\x1b[K" : "",
             done_, all_, what_, note.empty() ? "" : ", ", note, seconds, left / 60, left % 60,
             terminal ? "" : "\n");
  std::fflush(stderr);
  visible_ = terminal;
  return true;
}

void Progress::clear() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
  visible_ = false;
}

}  // namespace scalewise::frame
