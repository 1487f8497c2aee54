// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::files {

/// A file that is read in order, a block at a time, so that a header costs the same whatever comes
/// after it. Numbers have their lowest byte first. `field` is what errors call the bytes.
/// Throws:   the constructor, InvalidInput for what is not a regular file; the others, where the file
///           ends before what is asked for, or cannot be read.
class FileCursor {
 public:
  explicit FileCursor(const std::string& path) : path_(path) {
    detail::require_file(path);
    std::error_code failed;
    const bool regular = std::filesystem::is_regular_file(path, failed);
    if (!regular) throw InvalidInput(path, "(a pipe or a device)", "a regular file");
    size_ = std::filesystem::file_size(path, failed);
    file_ = detail::open_file(path);
    if (failed) detail::refuse_unreadable(path);
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t position() const { return block_begin_ + at_; }
  std::uint64_t left() const { return size_ - position(); }

  /// A complaint about a field of this file.
  InvalidInput error(const std::string& field, const std::string& value,
                     const std::string& expectation, const std::string& hint = {}) const {
    return InvalidInput(path_ + ": " + field, value, expectation, hint);
  }

  /// The next byte, which byte() gives again.
  char peek(std::string_view field) {
    if (at_ == block_.size()) fill(field);
    return block_[at_];
  }

  char byte(std::string_view field) {
    const char next = peek(field);
    ++at_;
    return next;
  }

  std::string text(std::size_t count, std::string_view field) {
    require(count, field);
    std::string bytes(count, '\0');
    for (char& c : bytes) c = byte(field);
    return bytes;
  }

  /// A whole number of 1, 2, 4 or 8 bytes.
  std::uint64_t natural(unsigned bytes, std::string_view field) {
    require(bytes, field);
    std::uint64_t number = 0;
    for (unsigned b = 0; b < bytes; ++b) {
      const char next = at_ < block_.size() ? block_[at_++] : byte(field);
      number |= std::uint64_t{static_cast<unsigned char>(next)} << (8 * b);
    }
    return number;
  }

  void skip(std::uint64_t count, std::string_view field) {
    require(count, field);
    if (count <= block_.size() - at_) {
      at_ += static_cast<std::size_t>(count);
      return;
    }
    block_begin_ = position() + count;
    block_.clear();
    at_ = 0;
  }

 private:
  static constexpr std::size_t block_size = std::size_t{1} << 14;

  void require(std::uint64_t count, std::string_view field) const {
    if (count <= left()) return;
    throw error(std::string(field), "(cut short)",
                std::to_string(count) + " bytes, where " + std::to_string(left()) + " are left");
  }

  void fill(std::string_view field) {
    require(1, field);
    block_begin_ = position();
    at_ = 0;
    block_.resize(
        static_cast<std::size_t>((std::min)(size_ - block_begin_, std::uint64_t{block_size})));
    errno = 0;
    file_.seekg(static_cast<std::streamoff>(block_begin_));
    if (!file_.read(block_.data(), static_cast<std::streamsize>(block_.size()))) {
      detail::refuse_unreadable(path_);  // or somebody made it shorter
    }
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::vector<char> block_;
  std::uint64_t block_begin_ = 0;
  std::size_t at_ = 0;  // in the block
};

}  // namespace scalewise::files
