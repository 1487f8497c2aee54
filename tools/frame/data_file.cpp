// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/data_file.hpp"

#include <filesystem>
#include <system_error>

namespace scalewise::frame {

std::string data_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);  // of Linux
  if (!failed) {
    const fs::path installed =
        program.parent_path().parent_path() / "share" / "scalewise" / "data" / name;
    if (fs::is_regular_file(installed, failed)) return installed.string();
  }
  return SCALEWISE_DATA_DIR "/" + name;
}

}  // namespace scalewise::frame
