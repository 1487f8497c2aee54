// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "scalewise/core/error.hpp"

namespace scalewise {

/// Writes a file so that readers see the old content or the new one, never a part: under a
/// temporary name in the same folder, then renamed.
/// Throws:   InvalidInput when the folder is missing or the file cannot be written; nothing is
///           left behind.
inline void write_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  const auto fail = [&](const std::string& why) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw InvalidInput("output file", path, "a file that can be written", why);
  };
  if (std::filesystem::is_directory(path)) fail("it is a folder");
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) fail("is the folder there, and may you write to it?");
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) fail(error.message());
}

}  // namespace scalewise
