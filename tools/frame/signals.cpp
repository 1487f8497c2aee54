// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/signals.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace scalewise::frame {

namespace {

static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use it");
std::atomic<int> first = 0;
std::atomic<int> second = 0;
std::atomic<int> busy = 0;
const char* program_name = "";
std::atomic<bool> abandons = false;

void say(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // there is no way to report it
}

extern "C" void on_signal(int signal) {
  int none = 0;
  if (first.compare_exchange_strong(none, signal)) {
    if (::isatty(STDERR_FILENO) != 0) say("\r\x1b[K");
    say(program_name);
    say(abandons ? ": stopping the run, which is lost; press Ctrl-C again to stop at once\n"
                 : ": finishing the current run; press Ctrl-C again to abort\n");
    return;
  }
  second = signal;
  if (busy == 0) ::_exit(128 + signal);
}

/// A stack of their own for handlers of signals in this thread, unless it has one, as under a sanitizer.
/// On the usual stack they would write into the heap, since oneDNN up to 3.11 keeps an address of it in the stack's register
/// while it multiplies (https://github.com/uxlfoundation/oneDNN/issues/4845).
void make_signal_stack() {
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  alignas(std::max_align_t) static std::array<std::byte, std::size_t{1} << 16> memory;
  stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ::sigaltstack(&stack, nullptr);  // it does not fail for a stack of this size
}

void handle(int signal) {
  make_signal_stack();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  ::sigaction(signal, &action, nullptr);  // it does not fail for these signals
}

}  // namespace

void handle_signals(const char* program) {
  program_name = program;
  handle(SIGINT);
  handle(SIGTERM);
}

void ignore_write_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

void abandon_on_signal() { abandons = true; }

int stop_requested() { return first; }

Uninterrupted::Uninterrupted() { ++busy; }

Uninterrupted::~Uninterrupted() {
  if (--busy == 0 && second != 0) ::_exit(128 + second);
}

}  // namespace scalewise::frame
