// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace scalewise::check {

/// How many seeds of each size a round of a check asks for, all earlier rounds included. Wide models
/// average over themselves and cost more, so seeds go to the narrow ones.
/// Equation: along the width 2^round (largest/size)^(3/2), at most 16 · 2^round: scatter falls as
///           size^-½ and the cost of a run grows as size², for which this is the cheapest slope;
///           along the depth 2^round · 2 (largest/size)^½, at most 8 · 2^round
/// Shapes:   one number for each size; sizes and round, from 0, as given
inline std::vector<long> seeds_per_size(const std::vector<long>& sizes, int round, bool depth) {
  std::vector<long> seeds;
  const long times = 1L << round;
  for (const long size : sizes) {
    const double ratio = static_cast<double>(sizes.back()) / static_cast<double>(size);
    const double wanted = depth ? 2 * std::sqrt(ratio) : std::pow(ratio, 1.5);
    seeds.push_back(times * std::clamp(std::lround(wanted), 1L, depth ? 8L : 16L));
  }
  return seeds;
}

/// The share of the error rate that a round may spend, so that all rounds together keep it.
/// Equation: 2^-(round + 1)
/// Units:    a share, at most 1/2
inline double error_share(int round) { return std::ldexp(1.0, -(round + 1)); }

/// The runs of a check that adds runs until it is decided: each round has more seeds and, where the
/// verdict lacks a larger size, one more size, twice as large as the largest.
class Rounds {
 public:
  Rounds(std::vector<long> sizes, bool depth)
      : asked_(sizes.size()), sizes_(std::move(sizes)), depth_(depth) {
    sizes_.push_back(2 * sizes_.back());
    ask();
  }

  /// All sizes that there may be; the last is the one more.
  const std::vector<long>& sizes() const { return sizes_; }
  /// How many seeds of each; none of a size that is not needed.
  const std::vector<long>& seeds() const { return seeds_; }
  /// The share of the error rate that this round may spend.
  /// Units:    as error_share()
  double share_of_errors() const { return error_share(round_); }

  void next(bool larger) {
    ++round_;
    larger_ = larger_ || larger;
    ask();
  }

 private:
  void ask() {
    std::vector<long> sizes = sizes_;
    if (!larger_) sizes.resize(asked_);
    seeds_ = seeds_per_size(sizes, round_, depth_);
    seeds_.resize(sizes_.size());
  }

  std::size_t asked_;
  std::vector<long> sizes_;
  bool depth_;
  int round_ = 0;
  bool larger_ = false;
  std::vector<long> seeds_;
};

}  // namespace scalewise::check
