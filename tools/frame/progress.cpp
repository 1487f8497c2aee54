// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "frame/signals.hpp"

namespace scalewise::frame {

namespace {

bool is_terminal() {
  static const bool terminal = ::isatty(STDERR_FILENO) != 0;
  return terminal;
}

}  // namespace

bool& quiet() {
  static bool value = false;
  return value;
}

Progress::Progress(std::string what, long all, double cost)
    : what_(std::move(what)), all_(all), cost_(cost > 0 ? cost : static_cast<double>(all)) {}

Progress::~Progress() { clear(); }

void Progress::begin_at(long count) {
  const std::lock_guard lock(mutex_);
  done_ = count;
  spent_ = before_ = static_cast<double>(count);
}

bool Progress::done(double cost, const std::string& note) {
  const std::lock_guard lock(mutex_);
  ++done_;
  spent_ += cost;
  show(note);
  return stop_requested() == 0;
}

bool Progress::at(long count, const std::string& note) {
  const std::lock_guard lock(mutex_);
  done_ = count;
  spent_ = static_cast<double>(count);
  show(note);
  return stop_requested() == 0;
}

void Progress::say(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (quiet()) return;
  clear();
  fmt::print(stderr, "{}\n", line);
}

void Progress::show(const std::string& note) {
  const auto now = Clock::now();
  const std::chrono::duration<double> pause(is_terminal() ? 0.1 : 30);
  if (quiet() || stop_requested() != 0 || now - shown_ < pause) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double spent = spent_ - before_;
  const auto left = static_cast<long>(spent > 0 ? seconds * (cost_ - spent_) / spent + 0.5 : 0);
  fmt::print(stderr, "{}{} of {} {}{}{}, {:.0f} s, {}:{:02} left{}",
             is_terminal() ? "\r\x1b[K" : "", done_, all_, what_, note.empty() ? "" : ", ", note,
             seconds, left / 60, left % 60, is_terminal() ? "" : "\n");
  std::fflush(stderr);
  visible_ = is_terminal();
}

void Progress::clear() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
  visible_ = false;
}

}  // namespace scalewise::frame
