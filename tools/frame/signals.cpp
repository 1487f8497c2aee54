// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace scalewise::frame {

namespace {

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use it");
std::atomic<int> first = 0;
std::atomic<int> second = 0;
std::atomic<int> busy = 0;
const char* program_name = "";

void say(const char* text) {
#if defined(_WIN32)
  static_cast<void>(::_write(2, text, static_cast<unsigned>(std::strlen(text))));
#else
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // there is no way to report it
#endif
}

void leave(int signal) {
#if defined(_WIN32)
  std::_Exit(128 + signal);
#else
  ::_exit(128 + signal);
#endif
}

extern "C" void on_signal(int signal) {
  std::signal(signal, on_signal);  // some systems forget the handler
  int none = 0;
  if (first.compare_exchange_strong(none, signal)) {
#if !defined(_WIN32)
    if (::isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
#endif
    say(program_name);
    say(": finishing the current run; press Ctrl-C again to abort\n");
    return;
  }
  second = signal;
  if (busy == 0) leave(signal);
}

}  // namespace

void handle_signals(const char* program) {
  program_name = program;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

void ignore_write_signals() {
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);
#endif
#ifdef SIGPIPE
  std::signal(SIGPIPE, SIG_IGN);
#endif
}

int stop_requested() { return first; }

Uninterrupted::Uninterrupted() { ++busy; }

Uninterrupted::~Uninterrupted() {
  if (--busy == 0 && second != 0) leave(second);
}

}  // namespace scalewise::frame
