// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Ctrl-C and SIGTERM: the first asks the program to stop after the current run, the second stops it.
#pragma once

namespace scalewise::frame {

/// From now on the first signal says so on stderr and sets stop_requested(), and the second ends the
/// program; neither changes a result that is being computed. Writes beyond a limit of file size and to
/// closed pipes fail instead of ending it.
/// Requires: `program`, its name, stays; called by the main thread, which the system gives signals to.
void handle_signals(const char* program);
void ignore_write_signals();

/// The first signal says this from now on: what is being done is left undone.
void abandon_on_signal();

/// The signal that asked to stop, or 0.
int stop_requested();

/// Thrown where a program stops without a result.
struct Interrupted {};

/// A short time in which even the second signal waits, such as while a temporary file exists.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace scalewise::frame
