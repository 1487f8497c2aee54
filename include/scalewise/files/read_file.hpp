// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>
#include <vector>

#include "scalewise/messages/error.hpp"

namespace scalewise::files {

/// The most that is read from a pipe or a device, of which some never end.
inline constexpr std::size_t largest_stream = std::size_t{1} << 28;

namespace detail {

inline void require_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InvalidInput::cannot("open", path, "it is a directory");
  }
  if (path.empty()) throw InvalidInput("file name", "(empty)", "a file");
  if (!std::filesystem::exists(path, error)) {
    throw InvalidInput::cannot("open", path, error ? error.message() : "no such file");
  }
}

/// With the reason in errno, which opening and reading a stream leave there; 0: none is known.
[[noreturn]] inline void refuse_unreadable(const std::string& path) {
  throw InvalidInput::cannot(
      "read", path, errno == 0 ? "reading failed" : std::generic_category().message(errno));
}

/// Throws:   InvalidInput where it cannot be opened. Then errno is that of what is read from it.
inline std::ifstream open_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_unreadable(path);
  errno = 0;
  return file;
}

}  // namespace detail

/// The bytes of a file.
/// Requires: `limit`, the largest size in bytes that is accepted; of what is not a regular file, at
///           most largest_stream.
/// Throws:   InvalidInput, naming the file, when there is none, when it is a directory, when it
///           cannot be read, or when it is larger than `limit`.
inline std::string read_file(const std::string& path, std::size_t limit) {
  detail::require_file(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) limit = (std::min)(limit, largest_stream);
  std::ifstream file = detail::open_file(path);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit) {
      throw InvalidInput(path, "(larger)", "at most " + std::to_string(limit) + " bytes");
    }
  }
  if (!file.eof() || file.bad()) {
    detail::refuse_unreadable(path);
  }
  return text;
}

}  // namespace scalewise::files
