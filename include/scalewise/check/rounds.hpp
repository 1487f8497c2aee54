// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
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
inline double error_share(int round) { return std::ldexp(1.0, -(round + 1)); }

}  // namespace scalewise::check
