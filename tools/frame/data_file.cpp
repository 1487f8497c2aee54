// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/data_file.hpp"

#include <filesystem>
#include <system_error>

namespace scalewise::frame {

std::string data_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failed;
  // Of Linux: in the folder bin of where it is installed, or for a level of the processor deeper than that.
  fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    const fs::path installed = folder / "share" / "scalewise" / "data" / name;
    if (fs::is_regular_file(installed, failed)) return installed.string();
  }
  return SCALEWISE_DATA_DIR "/" + name;
}

}  // namespace scalewise::frame
