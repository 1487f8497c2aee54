// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace scalewise::inline messages {

/// Finds the closest of several candidates to a word, for "did you mean": the first that starts with
/// it, or else the one that takes the fewest single-letter edits to reach, of a quarter of the word and
/// one more at most: a wrong guess is worse than none. Upper and lower case (ASCII) are the same.
class Nearest {
 public:
  explicit Nearest(std::string_view word) : word_(word.substr(0, longest)) {}

  void offer(std::string_view candidate) {
    const std::size_t distance = word_.size() > 1 && begins(candidate) ? 0 : edits(candidate);
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

  static constexpr bool same(char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(a) == lower(b);
  }

  bool begins(std::string_view candidate) const {
    return candidate.size() >= word_.size() &&
           std::equal(word_.begin(), word_.end(), candidate.begin(), same);
  }

  std::size_t edits(std::string_view candidate) const {
    candidate = candidate.substr(0, longest);
    std::array<std::size_t, longest + 1> row{};
    for (std::size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word_.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= candidate.size(); ++j) {
        const std::size_t replace = diagonal + (same(word_[i - 1], candidate[j - 1]) ? 0 : 1);
        diagonal = row[j];
        const std::size_t edit = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
        row[j] = replace < edit ? replace : edit;
      }
    }
    return row[candidate.size()];
  }

  std::string_view word_;
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

}  // namespace scalewise::inline messages
