// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/files.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <system_error>

#include "frame/signals.hpp"
#include "scalewise/files/bytes.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::frame {

namespace {

namespace fs = std::filesystem;

/// Writes a small file and removes it. Returns: whether both went well.
bool takes_files(const fs::path& folder) {
  const Uninterrupted now;
  std::string path = (folder / ".scalewise-try-XXXXXX").string();
  const int file = ::mkstemp(path.data());
  if (file < 0) return false;
  const bool removed = ::unlink(path.c_str()) == 0;  // so that a killed program leaves none
  const bool written = ::write(file, "\n", 1) == 1;
  return ::close(file) == 0 && removed && written;
}

}  // namespace

std::string data_file(const std::string& name) {
  std::error_code failed;
  // Linux says where the program is: in the folder bin of where it is installed.
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path installed =
      program.parent_path().parent_path() / "share" / "scalewise" / "data" / name;
  if (fs::is_regular_file(installed, failed)) return installed.string();
  return SCALEWISE_DATA_DIR "/" + name;
}

std::string own_name() {
  std::random_device random;
  std::string seed;
  for (int i = 0; i < 4; ++i) seed += std::to_string(random()) + " ";
  return files::fingerprint(seed);
}

void try_folder(const std::string& option, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw InvalidInput(option, messages::printable(folder), "a folder that can be made",
                       error ? error.message() : "");
  }
  if (takes_files(folder)) return;
  throw InvalidInput(option, messages::printable(folder), "a folder that can be written",
                     "may you write there, and is there room?");
}

void try_file(const std::string& option, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw InvalidInput(option, messages::printable(path), "a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  const bool linked = fs::is_symlink(path, error);
  error.clear();
  const fs::path target = linked ? fs::weakly_canonical(path, error) : fs::path(path);
  if (error || target.empty()) {
    throw InvalidInput(option, messages::printable(path), "a file that can be written",
                       error.message());
  }
  if (takes_files(target.has_parent_path() ? target.parent_path() : ".")) return;
  throw InvalidInput(option, messages::printable(path), "a file that can be written",
                     "is the folder there, may you write to it, and is there room?");
}

}  // namespace scalewise::frame
