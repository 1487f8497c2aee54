// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Where a run may write.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "lab/programs/train/output_lock.hpp"
#include "scalewise/messages/error.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// Refuses two names of one file.
inline void require_own_files(const Settings& s) {
  namespace fs = std::filesystem;
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code error;
    return !a.empty() && !b.empty() && (a == b || fs::equivalent(a, b, error));
  };
  const std::string& data = s.digits.empty() ? s.text : s.digits;
  const auto check = [&](const char* option, const std::string& path, const std::string& other) {
    if (same(path, data) || same(path, other)) {
      throw InvalidInput(option, path, "a file of its own");
    }
  };
  check("--checkpoint", s.checkpoint, s.log);
  check("--log", s.log, s.checkpoint);
}

/// The files that a run keeps for itself until it ends.
class Outputs {
 public:
  /// Throws:   InvalidInput for a file that another run has.
  explicit Outputs(const Settings& s)
      : s_(s), checkpoint_("--checkpoint", s.checkpoint), log_("--log", s.log) {}

  /// Whether a run, given by a fingerprint of its inputs, begins instead of resuming: with
  /// --overwrite, before there is a checkpoint, and where the same run was killed before its first.
  /// Throws:   InvalidInput where it would overwrite a file without --overwrite.
  bool begins(const std::string& run) const {
    const bool saved = std::filesystem::is_regular_file(s_.checkpoint);
    if (saved && !s_.overwrite && !checkpoint_.begun_by(run)) return false;
    const bool log = std::filesystem::is_regular_file(s_.log);
    if (log && !s_.overwrite && !log_.begun_by(run)) {
      throw InvalidInput("--log", s_.log, "a new file",
                         s_.checkpoint.empty()
                             ? "the file exists; use --overwrite"
                             : "the file exists without a checkpoint to resume; use --overwrite");
    }
    return true;
  }

  void remove_leftovers() const {
    checkpoint_.remove_leftovers();
    log_.remove_leftovers();
  }

  /// Before the first file is touched. The log comes first: as long as only it is marked, an old
  /// checkpoint and its log are still a pair.
  void begin(const std::string& run) {
    log_.begin(run);
    checkpoint_.begin(run);
  }

  /// After the first checkpoint was saved.
  void done() {
    checkpoint_.done();
    log_.done();
  }

 private:
  const Settings& s_;
  OutputLock checkpoint_;
  OutputLock log_;
};

/// Finds out whether a file could be written, leaving an existing one alone: `write` is tried
/// under a new name next to it. What is not a regular file (a device) is written to.
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
      beside = target + probe_suffix + std::to_string(i);
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
