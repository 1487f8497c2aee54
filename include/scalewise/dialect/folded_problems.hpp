// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/messages/words.hpp"

namespace scalewise::dialect::detail {

/// A text with a star for each number between dots or slashes: "blk.*.ffn_up" of "blk.3.ffn_up".
inline std::string with_stars(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string starred;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i > 0 && (text[i - 1] == '.' || text[i - 1] == '/');
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (begins && end > i && end < text.size() && (text[end] == '.' || text[end] == '/')) {
      starred += '*';
      i = end - 1;
    } else {
      starred += text[i];
    }
  }
  return starred;
}

/// Problems with tensors: one line for all that differ in the layer alone, with their number.
class FoldedProblems {
 public:
  void add(std::string_view name, const std::string& text) {
    std::string key = with_stars(name).append(": ").append(with_stars(text));
    const auto [at, is_first] = rows_.emplace(std::move(key), lines_.size());
    if (is_first) lines_.push_back({std::string(name), text, 0});
    ++lines_[at->second].times;
  }

  std::vector<std::string> take() const {
    std::vector<std::string> all;
    all.reserve(lines_.size());
    for (const Problem& line : lines_) {
      const std::string name = printable(line.times > 1 ? with_stars(line.name) : line.name);
      const std::string count = line.times > 1 ? " (" + std::to_string(line.times) + ")" : "";
      all.push_back(name + count + ": " + (line.times > 1 ? with_stars(line.text) : line.text));
    }
    return all;
  }

 private:
  struct Problem {
    std::string name;
    std::string text;
    std::size_t times = 0;
  };

  std::map<std::string, std::size_t> rows_;
  std::vector<Problem> lines_;
};

}  // namespace scalewise::dialect::detail
