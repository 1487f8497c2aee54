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

/// A file that a function or an option of a program writes.
struct OutputFile {
  std::string path, option;

  [[noreturn]] void refuse(const std::string& why) const {
    throw InvalidInput(option, path.empty() ? "(empty)" : path, "a file that can be written", why);
  }

  /// Whether it is a device or a pipe, which is written to as it stands.
  bool is_device() const {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (path.empty() || fs::is_directory(status)) refuse("it is not a file");
    return fs::exists(status) && !fs::is_regular_file(status);
  }

  /// Where a link leads in the end, whether or not a file is there.
  std::string target() const {
    namespace fs = std::filesystem;
    fs::path target = path;
    for (int links = 0; links < 40; ++links) {
      std::error_code error;
      if (!fs::is_symlink(target, error)) return target.string();
      target = target.parent_path() / fs::read_symlink(target, error);
      if (error) refuse(error.message());
    }
    refuse("its links lead nowhere");
  }
};

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

/// A text on disk under a temporary name, next to the file that it is for.
struct Temporary {
  std::string name;
  OpenFile file;  // which holds a lock
};

inline Temporary write_temporary(const OutputFile& output, const std::string& target,
                                 std::string_view text) {
  Temporary temporary;
  for (int i = 0; i < 1000 && temporary.file == nullptr; ++i) {
    temporary.name = target + temporary_suffix + std::to_string(i);
    temporary.file = own_temporary(temporary.name);
  }
  std::FILE* file = temporary.file.get();
  if (file == nullptr) output.refuse("is the folder there, and may you write to it?");
  const bool on_disk =
      std::fwrite(text.data(), 1, text.size(), file) == text.size() && flush_to_disk(file);
#if defined(_WIN32)
  temporary.file.reset();  // elsewhere it is renamed while it is locked
#endif
  if (on_disk) return temporary;
  std::error_code error;
  std::filesystem::remove(temporary.name, error);
  output.refuse("is the disk full?");
}

}  // namespace detail

/// Finds out before the work whether write_file() could write its result: a byte is written next to the file,
/// and removed. Devices and pipes are not tried.
/// Throws:   InvalidInput as write_file() does, with the option that names the file.
inline void try_file(const std::string& path, const std::string& option) {
  const detail::OutputFile output{path, option};
  if (output.is_device()) return;
  std::error_code error;
  std::filesystem::remove(detail::write_temporary(output, output.target(), "\n").name, error);
}

/// Makes a folder where there is none, and finds out whether files can be written in it.
/// Throws:   InvalidInput, with the option that names the folder.
inline void try_folder(const std::string& path, const std::string& option) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  try {
    try_file((std::filesystem::path(path) / ".try").string(), option);
  } catch (const InvalidInput&) {
    throw InvalidInput(option, path, "a folder that can be written",
                       error ? error.message() : "may you write there, and is there room?");
  }
}

/// Locks a folder until the result is destroyed, as lock_file() does: against others that ask for the lock.
/// Throws:   InvalidInput where another process has it.
inline OpenFile lock_folder(const std::string& path) {
  OpenFile folder(std::fopen(path.c_str(), "rb"));  // empty where folders cannot be opened
  if (folder == nullptr || lock_file(folder.get(), IfLocked::refuse)) return folder;
  throw InvalidInput(path, "(in use)", "a folder that no other process writes");
}

/// Writes a file so that readers see the old content or the new one, never a part, even after a
/// power failure: under a temporary name in the same folder, flushed to disk, then renamed. A
/// link is followed, also to a file that does not exist yet; a file keeps its permissions, and what
/// is not a regular file (a device, a pipe) is written to as it stands.
/// Throws:   InvalidInput when the folder is missing, links lead in a circle, or not all can be
///           written; no temporary file remains. A process that is killed may leave
///           FILE.scalewise-tmp0, which the next one that writes FILE takes over.
inline void write_file(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  const detail::OutputFile output{path, "output file"};
  if (output.is_device()) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr || !detail::write_and_close(file, text)) {
      output.refuse("not all of it was taken");
    }
    return;
  }
  const std::string target = output.target();
  const detail::Temporary temporary = detail::write_temporary(output, target, text);
  std::error_code error;
  const fs::file_status old = fs::status(target, error);
  if (fs::exists(old)) fs::permissions(temporary.name, old.permissions(), error);
  fs::rename(temporary.name, target, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(temporary.name, error);
    output.refuse(why);
  }
  flush_folder(fs::path(target).parent_path().string());
}

}  // namespace scalewise::files
