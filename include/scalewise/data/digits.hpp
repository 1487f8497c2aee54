// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scalewise/data/images.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::data {

namespace detail {

/// One line of a table of digits after the other, with the place for messages.
class DigitsReader {
 public:
  explicit DigitsReader(std::string path) : path_(std::move(path)) {}

  void read_line(std::string_view line) {
    ++line_;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) return;
    std::vector<std::string_view> fields;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = (std::min)(line.find(',', begin), line.size());
      fields.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    if (side_ == 0) set_side(fields.size());
    const auto count = static_cast<std::size_t>(side_ * side_);
    if (fields.size() != count + 1) refuse_count(fields.size());
    for (std::size_t i = 0; i < count; ++i) {
      pixels_.push_back(static_cast<float>(number(fields[i], i + 1, white)) / white);
    }
    labels_.push_back(number(fields[count], count + 1, last_class));
  }

  Images take() && {
    if (labels_.empty()) throw InvalidInput(path_, "(empty)", "a line per image");
    Images images;
    images.side = side_;
    images.pixels = Eigen::Map<const Matrix<float>>(
        pixels_.data(), static_cast<Eigen::Index>(labels_.size()), side_ * side_);
    images.labels = std::move(labels_);
    return images;
  }

 private:
  static constexpr int white = 16;
  static constexpr int last_class = 9;

  std::string place() const { return path_ + ", line " + std::to_string(line_); }

  void set_side(std::size_t fields) {
    Eigen::Index side = 1;
    while (static_cast<std::size_t>(side * side) + 1 < fields) ++side;
    if (static_cast<std::size_t>(side * side) + 1 != fields) refuse_count(fields);
    side_ = side;
  }

  [[noreturn]] void refuse_count(std::size_t fields) const {
    throw InvalidInput(place(), std::to_string(fields) + " values",
                       side_ == 0 ? "the pixels of a square image and a label"
                                  : std::to_string(side_ * side_) + " pixels and a label");
  }

  int number(std::string_view text, std::size_t column, int largest) const {
    int value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < 0 || value > largest) {
      throw InvalidInput(place() + ", column " + std::to_string(column),
                         text.empty() ? "(empty)" : messages::printable(text),
                         "a whole number from 0 to " + std::to_string(largest));
    }
    return value;
  }

  std::string path_;
  std::size_t line_ = 0;
  Eigen::Index side_ = 0;  // from the first image
  std::vector<float> pixels_;
  std::vector<int> labels_;
};

}  // namespace detail

/// Images from text: per line side*side pixels from 0 to 16 and a label from 0 to 9, with commas
/// between them.
/// Units:    pixels of the result are fractions of 16, from 0 to 1.
/// Throws:   InvalidInput, naming line and column, for anything but such numbers and for lines of
///           another length than the first; for a file that is missing, unreadable, without an
///           image, or larger than 1 GiB.
inline Images read_digits(const std::string& path) {
  constexpr std::size_t limit = std::size_t{1} << 30U;
  const std::string text = files::read_file(path, limit);
  detail::DigitsReader reader(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = (std::min)(text.find('\n', begin), text.size());
    reader.read_line(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return std::move(reader).take();
}

}  // namespace scalewise::data
