// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// One file per process, in memory where the system can do that.

#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace scalewise::fuzz {

/// A folder in memory where the system has one.
inline std::filesystem::path scratch_folder() {
  const std::filesystem::path memory = "/dev/shm";
  std::error_code error;
  return std::filesystem::is_directory(memory, error) ? memory
                                                      : std::filesystem::temp_directory_path();
}

class ScratchFile {
 public:
  ScratchFile() : path_(scratch_folder() / ("scalewise_fuzz_" + std::to_string(::getpid()))) {}
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  std::string path() const { return path_.string(); }

  std::string with(std::string_view content) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    if (!file.write(content.data(), static_cast<std::streamsize>(content.size())).flush()) {
      std::abort();
    }
    return path();
  }

 private:
  std::filesystem::path path_;
};

/// The process's own.
inline const ScratchFile& scratch_file() {
  static const ScratchFile file;
  return file;
}

}  // namespace scalewise::fuzz
