// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Ctrl-C and SIGTERM: the first is a request, the second stops at once.
#pragma once

#include <csignal>

namespace scalewise::train {

inline volatile std::sig_atomic_t requested_signal = 0;

extern "C" inline void request_stop(int signal) {
  requested_signal = signal;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

inline void catch_interrupts() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

/// The signal that asked to stop, or 0.
inline int stop_request() { return requested_signal; }

}  // namespace scalewise::train
