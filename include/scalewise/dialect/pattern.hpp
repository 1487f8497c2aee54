// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalewise::dialect::detail {

/// Where the layer's number stands in a pattern.
struct Placeholder {
  std::size_t begin = std::string_view::npos;
  std::size_t size = 0;
  int first = 0;  // number of the first layer

  explicit operator bool() const { return size > 0; }
};

/// The first {}, or {2} and the like.
inline Placeholder placeholder(std::string_view pattern) {
  for (std::size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    const std::size_t end = pattern.find_first_not_of("0123456789", at + 1);
    if (end == std::string_view::npos || pattern[end] != '}' || end > at + 4) continue;
    int first = 0;
    std::from_chars(pattern.data() + at + 1, pattern.data() + end, first);
    return {at, end + 1 - at, first};
  }
  return {};
}

/// A pattern with the number of a layer, which counts from 0.
inline std::string filled(std::string_view pattern, long layer) {
  const Placeholder hole = placeholder(pattern);
  if (!hole) return std::string(pattern);
  return std::string(pattern.substr(0, hole.begin)) + std::to_string(layer + hole.first) +
         std::string(pattern.substr(hole.begin + hole.size));
}

/// The layer, from 0, that makes a name of a pattern; 0 for a pattern without one.
inline std::optional<long> layer_of(std::string_view pattern, std::string_view name) {
  const Placeholder hole = placeholder(pattern);
  if (!hole) return pattern == name ? std::optional<long>(0) : std::nullopt;
  const std::string_view tail = pattern.substr(hole.begin + hole.size);
  if (name.size() <= hole.begin + tail.size() || !name.starts_with(pattern.substr(0, hole.begin)) ||
      !name.ends_with(tail)) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(hole.begin, name.size() - hole.begin - tail.size());
  long layer = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  const bool canonical = digits == "0" || digits.front() != '0';
  if (error != std::errc{} || end != digits.data() + digits.size() || !canonical ||
      layer < hole.first) {
    return std::nullopt;
  }
  return layer - hole.first;
}

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    if (end != 0) words.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return words;
}

}  // namespace scalewise::dialect::detail
