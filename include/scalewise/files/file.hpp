// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "scalewise/files/lock.hpp"
#include "scalewise/messages/error.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#elif defined(_WIN32)
#include <io.h>
#endif

namespace scalewise::files {

/// Part of the temporary name under which write_file() writes a file, between its name and a number.
/// No user names a file like that, so that one left by a process that was killed may be removed.
inline constexpr const char* temporary_suffix = ".scalewise-tmp";

namespace detail {

[[noreturn]] inline void refuse_output(const std::string& path, const std::string& why) {
  throw InvalidInput("output file", path.empty() ? "(empty)" : path, "a file that can be written",
                     why);
}

/// Where a link leads in the end, whether or not a file is there.
inline std::string link_target(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path target = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    if (!fs::is_symlink(target, error)) return target.string();
    target = target.parent_path() / fs::read_symlink(target, error);
    if (error) refuse_output(path, error.message());
  }
  refuse_output(path, "its links lead nowhere");
}

/// Writes all of a text and closes; false when any of it was lost.
inline bool write_and_close(std::FILE* file, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return (std::fclose(file) == 0) && written;
}

}  // namespace detail

/// Sees to it that what was written to a file survives a power failure; false when it may not.
inline bool flush_to_disk(std::FILE* file) {
  if (std::fflush(file) != 0) return false;
#if defined(__unix__) || defined(__APPLE__)
  // EINVAL and EROFS: a file system that has nothing to flush.
  return ::fsync(::fileno(file)) == 0 || errno == EINVAL || errno == EROFS;
#elif defined(_WIN32)
  return ::_commit(::_fileno(file)) == 0;
#else
  return true;
#endif
}

/// The same for the names in a folder, where a system can do that.
inline void flush_folder(const std::string& folder) {
#if defined(__unix__) || defined(__APPLE__)
  const int handle = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  ::fsync(handle);
  ::close(handle);
#else
  static_cast<void>(folder);
#endif
}

namespace detail {

/// Opens a new file and locks it, or takes over one that is not locked: its process was killed.
/// Empty when another process has it, and, without locks, when it exists.
inline OpenFile own_temporary(const std::string& name) {
  OpenFile file(std::fopen(name.c_str(), "wbx"));
  if (file != nullptr) return lock_file(file.get(), IfLocked::refuse) ? std::move(file) : nullptr;
#if defined(__unix__) || defined(__APPLE__)
  struct stat named {};
  if (::lstat(name.c_str(), &named) != 0 || !S_ISREG(named.st_mode)) return nullptr;
  // No process of this user's has made a file of two names, or of another user's.
  if (named.st_nlink != 1 || named.st_uid != ::geteuid()) return nullptr;
  file.reset(std::fopen(name.c_str(), "r+b"));
  if (file == nullptr) return nullptr;
  const int handle = ::fileno(file.get());
  struct stat opened {};
  const bool locked = ::flock(handle, LOCK_EX | LOCK_NB) == 0;  // not where there are no locks
  const bool same = ::fstat(handle, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
                    opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  if (!locked || !same || ::ftruncate(handle, 0) != 0) return nullptr;
#endif
  return file;
}

}  // namespace detail

/// Writes a file so that readers see the old content or the new one, never a part, even after a
/// power failure: under a temporary name in the same folder, flushed to disk, then renamed. A
/// link is followed, also to a file that does not exist yet; a file keeps its permissions, and what
/// is no regular file (a device, a pipe) is written to as it stands.
/// Throws:   InvalidInput when the folder is missing, links lead in a circle, or not all can be
///           written; no temporary file remains. A process that is killed may leave
///           FILE.scalewise-tmp0, which the next one that writes FILE takes over.
inline void write_file(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) detail::refuse_output(path, "it is no file");
  const fs::file_status old = fs::status(path, error);
  if (fs::exists(old) && !fs::is_regular_file(old)) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr || !detail::write_and_close(file, text)) {
      detail::refuse_output(path, "not all of it was taken");
    }
    return;
  }
  const std::string target = detail::link_target(path);
  std::string temporary;
  OpenFile file;
  for (int i = 0; i < 1000 && file == nullptr; ++i) {
    temporary = target + temporary_suffix + std::to_string(i);
    file = detail::own_temporary(temporary);
  }
  if (file == nullptr) detail::refuse_output(path, "is the folder there, and may you write to it?");
  const bool on_disk = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       flush_to_disk(file.get());
#if defined(_WIN32)
  file.reset();  // elsewhere it is renamed while it is locked
#endif
  if (!on_disk) {
    fs::remove(temporary, error);
    detail::refuse_output(path, "is the disk full?");
  }
  if (fs::exists(old)) fs::permissions(temporary, old.permissions(), error);
  fs::rename(temporary, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(temporary, error);
    detail::refuse_output(path, why);
  }
  flush_folder(fs::path(target).parent_path().string());
}

}  // namespace scalewise::files
