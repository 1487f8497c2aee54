// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The files that a run keeps for itself until it ends.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "scalewise/files/file.hpp"
#include "scalewise/files/lock.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/stat.h>
#endif

namespace scalewise::train {

/// The same as temporary_suffix for what try_to_write() writes.
inline constexpr const char* probe_suffix = ".scalewise-probe";

/// Keeps an output for one process, by a lock on FILE.lock next to it. That file says also which run
/// has begun to write FILE and not yet saved its first checkpoint: after a crash, that run may write
/// over what it finds. The system frees the lock of a process that was killed. Without a path, and
/// for what is not a regular file (a device), it does nothing.
class OutputLock {
 public:
  /// Throws:   InvalidInput, naming the option, when another process has the file, or when none can
  ///           be made next to it.
  OutputLock(const char* option, const std::string& path) : option_(option), path_(path) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (path.empty() || (fs::exists(path, error) && !fs::is_regular_file(path, error))) return;
    target_ = fs::weakly_canonical(fs::absolute(path), error)
                  .string();  // one lock, whatever link leads to it
    if (error) refuse_name();
    while (!lock()) {
    }
    run_ = files::read_file(lock_name(), 1000);
  }
  ~OutputLock() {
    if (file_ == nullptr) return;
    std::error_code error;
    if (run_.empty()) std::filesystem::remove(lock_name(), error);  // before it is unlocked
  }
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

  /// Whether a run, given by a fingerprint, was killed between begin() and done().
  bool begun_by(const std::string& run) const { return !run_.empty() && run_ == run; }

  /// Says that a run is about to write the file. What a killed run has said is not written again:
  /// killed once more in between, it would be forgotten.
  void begin(const std::string& run) {
    if (run_ != run) write(run);
  }

  /// Says that the file belongs to what the checkpoint holds.
  void done() {
    if (!run_.empty()) write({});
  }

  /// Removes what write_file() and try_to_write() leave next to the file when they are killed.
  void remove_leftovers() const {
    namespace fs = std::filesystem;
    if (file_ == nullptr) return;
    const fs::path target(target_);
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(target.parent_path(), error)) {
      const std::string name = entry.path().filename().string();
      for (const char* kind : {files::temporary_suffix, probe_suffix}) {
        const std::string stem = target.filename().string() + kind;
        if (name.size() > stem.size() && name.starts_with(stem) &&
            name.find_first_not_of("0123456789", stem.size()) == std::string::npos) {
          std::error_code ignored;
          fs::remove(entry.path(), ignored);
        }
      }
    }
  }

 private:
  std::string lock_name() const { return target_ + ".lock"; }

  [[noreturn]] void refuse_name() const {
    throw InvalidInput(option_, path_, "a file that can be written",
                       "may you write to its folder, and is there room?");
  }

  /// False when the process that had the lock has removed the file since it was opened.
  bool lock() {
    file_.reset(std::fopen(lock_name().c_str(), "ab"));
    if (file_ == nullptr) refuse_name();
    if (!files::lock_file(file_.get(), files::IfLocked::refuse)) {
      file_.reset();
      throw InvalidInput(option_, path_, "a file that no other run writes",
                         "wait until that run has ended, or give another name");
    }
#if defined(__unix__) || defined(__APPLE__)
    struct stat status {};
    return ::fstat(::fileno(file_.get()), &status) != 0 || status.st_nlink > 0;
#else
    return true;
#endif
  }

  void write(const std::string& run) {
    if (file_ == nullptr) return;
    std::error_code error;
    std::filesystem::resize_file(lock_name(), 0, error);
    run_ = run;
    if (error || std::fwrite(run.data(), 1, run.size(), file_.get()) != run.size() ||
        !files::flush_to_disk(file_.get())) {
      refuse_name();
    }
  }

  const char* option_;
  std::string path_;
  std::string target_;
  std::string run_;  // that has begun the file; empty: none
  files::OpenFile file_;
};

}  // namespace scalewise::train
