// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/outputs.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#if __has_include(<fcntl.h>) && __has_include(<unistd.h>)
#include <fcntl.h>
#include <unistd.h>
#endif

#include "frame/signals.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::frame {

namespace {

namespace fs = std::filesystem;

/// Writes a file that never has a name, so that a killed program leaves no file.
/// Returns:  whether that went well; none where there are no such files.
std::optional<bool> takes_nameless_files([[maybe_unused]] const fs::path& folder) {
#ifdef O_TMPFILE
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file >= 0) {
    const bool written = write(file, "\n", 1) == 1;
    return close(file) == 0 && written;
  }
#endif
  return {};
}

/// Writes a file, of a new name if it needs one, and removes it. Returns: whether both went well.
bool takes_files(const fs::path& folder) {
  const Uninterrupted now;
  if (const std::optional<bool> takes = takes_nameless_files(folder)) return *takes;
  std::error_code error;
  for (int i = 0; i < 1000; ++i) {
    const std::string path = (folder / (".scalewise-try" + std::to_string(i))).string();
    errno = 0;
    std::FILE* file = std::fopen(path.c_str(), "wbx");  // "x": never over somebody's file
    if (file == nullptr) {
      if (errno == EEXIST) continue;  // looked up later, another process may have removed its own
      return false;
    }
    const bool written = std::fputc('\n', file) != EOF;
    const bool closed = std::fclose(file) == 0;
    return fs::remove(path, error) && written && closed;
  }
  return false;
}

}  // namespace

void try_folder(const std::string& option, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw InvalidInput(option, printable(folder), "a folder that can be made",
                       error ? error.message() : "");
  }
  if (!takes_files(folder)) {
    throw InvalidInput(option, printable(folder), "a folder that can be written",
                       "may you write there, and is there room?");
  }
}

void try_file(const std::string& option, const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) throw InvalidInput(option, printable(path), "a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  fs::path target = path;
  std::error_code error;
  if (fs::is_symlink(target, ignored)) target = fs::weakly_canonical(target, error);
  if (error || target.empty()) {
    throw InvalidInput(option, printable(path), "a file that can be written", error.message());
  }
  const fs::path folder = target.parent_path().empty() ? fs::path(".") : target.parent_path();
  if (!takes_files(folder)) {
    throw InvalidInput(option, printable(path), "a file that can be written",
                       "is the folder there, may you write to it, and is there room?");
  }
}

}  // namespace scalewise::frame
