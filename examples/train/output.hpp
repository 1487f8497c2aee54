// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Where a run may write.
#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>

#include "scalewise/core/error.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// Makes a write beyond the system's limit of a file's size fail, instead of ending the program.
inline void let_large_writes_fail() {
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);
#endif
}

/// Refuses to write over files that a fresh run did not make.
inline void require_new_files(const Settings& s) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code error;
    return !a.empty() && !b.empty() && (a == b || fs::equivalent(a, b, error));
  };
  const std::string& data = s.digits.empty() ? s.text : s.digits;
  const auto check = [&](const char* option, const std::string& path, const std::string& other) {
    if (path.empty()) return;
    if (same(path, data) || same(path, other)) {
      throw InvalidInput(option, path, "a file of its own");
    }
    const fs::path folder = fs::path(path).parent_path();
    if (fs::is_directory(path) || (!folder.empty() && !fs::is_directory(folder))) {
      throw InvalidInput(option, path, "a file in a folder that is there");
    }
    if (!s.resume && !s.overwrite && fs::is_regular_file(path)) {
      throw InvalidInput(option, path, "a file that is not there yet",
                         "--resume goes on with it, --overwrite writes over it");
    }
  };
  check("--checkpoint", s.checkpoint, s.log);
  check("--log", s.log, s.checkpoint);
}

/// Finds out whether a file could be written, leaving the one that is there alone: `write` is tried
/// under a new name beside it. What is no regular file (a device) is written to.
/// Throws:   InvalidInput, naming the option, when it could not.
template <class Write>
void try_to_write(const char* option, const std::string& path, const Write& write) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string beside = path;
  const bool device = fs::exists(path, error) && !fs::is_regular_file(path, error);
  if (!device) {
    if (fs::is_symlink(path, error)) beside = fs::weakly_canonical(path, error).string();
    const std::string target = beside;
    for (int i = 0; fs::exists(fs::symlink_status(beside, error)) || i == 0; ++i) {
      beside = target + ".probe" + std::to_string(i);
    }
  }
  try {
    write(beside);
  } catch (const InvalidInput&) {
    throw InvalidInput(option, path, "a file that can be written",
                       "may you write to its folder, and is there room?");
  }
  if (!device) fs::remove(beside, error);
}

}  // namespace scalewise::train
