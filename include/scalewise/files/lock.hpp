// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdio>
#include <memory>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/file.h>
#endif

namespace scalewise::files {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// An open file, closed at the end of its scope.
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

/// Whether to wait for a file that another process has locked.
enum class IfLocked { wait, refuse };

/// Locks an open file until it is closed; false when another process or handle has locked it and
/// `refuse` is asked for. Programs that this one starts do not get the file, and so not the lock, which would
/// outlive a process that is killed.
/// Differs:  on Windows, and on file systems without locks, nothing is locked; there, only one
///           process at a time may write a file.
inline bool lock_file(std::FILE* file, IfLocked if_locked) {
#if defined(__unix__) || defined(__APPLE__)
  ::fcntl(::fileno(file), F_SETFD, FD_CLOEXEC);
  const int how = LOCK_EX | (if_locked == IfLocked::refuse ? LOCK_NB : 0);
  for (;;) {
    if (::flock(::fileno(file), how) == 0) return true;
    if (errno != EINTR) return errno != EWOULDBLOCK;
  }
#else
  static_cast<void>(file);
  static_cast<void>(if_locked);
  return true;
#endif
}

}  // namespace scalewise::files
