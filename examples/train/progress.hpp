// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What is shown on stderr while a run goes on.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace scalewise::train {

/// A line that is written anew on a terminal; elsewhere a plain line now and then.
class Progress {
 public:
  Progress(long begin, long steps, bool quiet)
      : begin_(begin), steps_(steps), quiet_(quiet), terminal_(is_terminal()) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(long done, double loss) {
    if (quiet_) return;
    const auto now = Clock::now();
    const bool last = done == steps_;
    const std::chrono::duration<double> wait(terminal_ ? 0.1 : 30);
    if (!last && now - shown_ < wait) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double speed = static_cast<double>(done - begin_) / (seconds > 0 ? seconds : 1e-9);
    const auto left = static_cast<long>(static_cast<double>(steps_ - done) / speed + 0.5);
    char line[160];
    std::snprintf(line, sizeof(line), "%ld/%ld  loss %.4g  %.3g steps/s  %ld:%02ld left", done,
                  steps_, loss, speed, left / 60, left % 60);
    if (terminal_) {
      std::fprintf(stderr, "\r\x1b[K%s %s", bar(done).c_str(), line);
      visible_ = true;
    } else {
      std::fprintf(stderr, "step %s\n", line);
    }
    std::fflush(stderr);
  }

  /// A line that stays.
  void say(const std::string& text) {
    if (quiet_) return;
    clear();
    std::fprintf(stderr, "%s\n", text.c_str());
  }

  static bool is_terminal() {
#if defined(_WIN32)
    return ::_isatty(::_fileno(stderr)) != 0;
#else
    return ::isatty(STDERR_FILENO) != 0;
#endif
  }

  void clear() {
    if (visible_) std::fputs("\r\x1b[K", stderr);
    visible_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string bar(long done) const {
    constexpr long width = 20;
    const auto full = static_cast<std::size_t>(done * width / steps_);
    return "[" + std::string(full, '#') + std::string(width - full, '.') + "]";
  }

  long begin_;
  long steps_;
  bool quiet_;
  bool terminal_;
  bool visible_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
};

}  // namespace scalewise::train
