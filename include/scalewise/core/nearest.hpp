// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace scalewise {

/// The candidate that starts with the word, or else takes the fewest single-letter edits to reach,
/// for "did you mean".
/// Requires: at least one candidate.
inline std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  word = word.substr(0, 64);
  for (const std::string& candidate : candidates) {
    if (word.size() > 1 && candidate.starts_with(word)) return candidate;
  }
  const auto distance = [&](std::string_view candidate) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t replace = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        const std::size_t edit = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
        row[j] = replace < edit ? replace : edit;
      }
    }
    return row.back();
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (distance(candidates[i]) < distance(candidates[best])) best = i;
  }
  return candidates[best];
}

}  // namespace scalewise
