// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "scalewise/messages/utf8.hpp"

namespace scalewise::messages {

/// Finds the closest of several candidates to a word, for "did you mean": the first that starts with
/// it, or else the one that takes the fewest single-letter edits to reach, of a quarter of the word and
/// one more at most: a wrong guess is worse than none. Upper and lower case (ASCII) are the same.
class Nearest {
 public:
  explicit Nearest(std::string_view word) : word_(lower(word)) {}

  void offer(std::string_view candidate) {
    const std::string low = lower(candidate);
    const std::size_t distance = word_.size() > 1 && low.starts_with(word_) ? 0 : edits(low);
    const bool alike = distance <= 1 + word_.size() / 4 && distance < candidate.size();
    if (alike && (best_.empty() || distance < distance_)) {
      best_ = candidate;
      distance_ = distance;
    }
  }

  bool empty() const { return best_.empty(); }

  /// "did you mean …?", or nothing when no candidate was alike.
  const std::string& word() const { return best_; }
  std::string hint() const { return best_.empty() ? "" : "did you mean " + best_ + "?"; }

 private:
  static constexpr std::size_t longest = 64;

  /// The beginning of a text, in lower case.
  static std::string lower(std::string_view text) { return in_lower_case(text.substr(0, longest)); }

  /// More than counts as alike where the lengths alone say so: most candidates.
  std::size_t edits(const std::string& candidate) const {
    const std::size_t rows = word_.size(), columns = candidate.size();
    const std::size_t longer = rows > columns ? rows : columns;
    const std::size_t shorter = rows > columns ? columns : rows;
    if (longer - shorter > 1 + rows / 4) return longer;
    std::array<std::size_t, longest + 1> row{};
    for (std::size_t j = 0; j <= columns; ++j) row[j] = j;
    for (std::size_t i = 1; i <= rows; ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= columns; ++j) {
        const std::size_t replace = diagonal + (word_[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        const std::size_t edit = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
        row[j] = replace < edit ? replace : edit;
      }
    }
    return row[columns];
  }

  std::string word_;
  std::string best_;
  std::size_t distance_ = 0;
};

/// The hint for a word that is not among the candidates.
template <class Candidates>
std::string did_you_mean(std::string_view word, const Candidates& candidates) {
  Nearest nearest(word);
  for (const auto& candidate : candidates) nearest.offer(candidate);
  return nearest.hint();
}

}  // namespace scalewise::messages
