// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Edits of text with commas.

#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/json_edit.hpp"

namespace scalewise::fuzz {

/// One cell is another, or what a program fails at.
inline std::string edited_cells(std::string input, Random& random) {
  std::vector<std::size_t> ends;  // of cells
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input[i] == ',' || input[i] == '\n') ends.push_back(i);
  }
  if (ends.empty()) return input;
  const auto cell = [&] {
    const std::size_t at = below(ends.size(), random);
    const std::size_t begin = at == 0 ? 0 : ends[at - 1] + 1;
    return std::pair{begin, ends[at] - begin};
  };
  const auto [from, length] = cell();
  const std::string other =
      below(2, random) == 0 ? input.substr(from, length) : hostile_json(random);
  const auto [begin, count] = cell();
  return input.replace(begin, count, other);
}

}  // namespace scalewise::fuzz
