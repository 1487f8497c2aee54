// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scalewise/dialect/dialect.hpp"
#include "scalewise/dialect/pattern.hpp"

namespace scalewise::dialect::detail {

/// A line of a dialect that a name is of, and the layer in the name.
struct LineOfName {
  std::size_t line = 0;
  long layer = 0;
};

/// Finds the lines of a dialect that a name is of.
/// Time:     of one name independent of the number of lines
class PatternIndex {
 public:
  explicit PatternIndex(const Dialect& dialect) : dialect_(dialect) {
    for (std::size_t line = 0; line < dialect.patterns.size(); ++line) {
      const std::string_view name = dialect.patterns[line].name;
      const Placeholder hole = placeholder(name);
      std::string key(name);
      if (hole) key.replace(hole.begin, hole.size, "{}");
      lines_[std::move(key)].push_back(line);
    }
  }

  /// All lines, with and without the prefix that names may lack.
  std::vector<LineOfName> lines_of(std::string_view name) const {
    std::vector<LineOfName> found;
    add(name, found);
    if (!dialect_.prefix.empty()) add(std::string(dialect_.prefix).append(name), found);
    return found;
  }

 private:
  /// Numbers in a name that may be a layer's; no code base has as many.
  static constexpr int most_numbers = 8;

  void add(std::string_view name, std::vector<LineOfName>& found) const {
    look_up(std::string(name), name, found);
    int numbers = 0;
    for (std::size_t begin = 0; begin < name.size() && numbers < most_numbers;) {
      std::size_t end = begin;
      while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
      if (end > begin) {
        ++numbers;
        std::string key(name.substr(0, begin));
        look_up(key.append("{}").append(name.substr(end)), name, found);
      }
      begin = end + (end == begin ? 1 : 0);
    }
  }

  void look_up(const std::string& key, std::string_view name,
               std::vector<LineOfName>& found) const {
    const auto at = lines_.find(key);
    if (at == lines_.end()) return;
    for (const std::size_t line : at->second) {
      if (const auto layer = layer_of(dialect_.patterns[line].name, name)) {
        found.push_back({line, *layer});
      }
    }
  }

  const Dialect& dialect_;
  std::unordered_map<std::string, std::vector<std::size_t>> lines_;
};

}  // namespace scalewise::dialect::detail
