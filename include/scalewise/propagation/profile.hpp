// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "scalewise/propagation/moments.hpp"

namespace scalewise::propagation {

/// The moments between the blocks of a stack: of the stream, and of the gradient with respect to it.
struct Profile {
  std::size_t blocks_per_layer = 2;
  std::vector<SignalMoments> forward;   // before the first block, then after each
  std::vector<SignalMoments> gradient;  // at the same places
  std::vector<double> relative;         // β² var f/(λ² var x) of each block
  std::vector<double> scores;           // S of attention blocks, the variance of one query's scores
  SignalMoments memory_gradient{0, 0, 0};  // what all cross-attention blocks hand to the encoder

  std::size_t depth() const { return relative.size() / blocks_per_layer; }

  /// Before layer l, from 0; after the last for l = depth().
  const SignalMoments& forward_at(std::size_t l) const { return forward[l * blocks_per_layer]; }
  const SignalMoments& gradient_at(std::size_t l) const { return gradient[l * blocks_per_layer]; }
};

/// How much the output moves with the parameters, in the mean form.
/// Equation: Σ β² var f/(λ² var x) over blocks
/// Source:   Davis et al. 2021, as quoted by Kedia et al. 2024 (arXiv:2403.09635), section 4.6.
/// Units:    a sum of ratios of variances
inline double mean_sensitivity(const Profile& profile) {
  double sum = 0;
  for (const double relative : profile.relative) sum += relative;
  return sum;
}

/// The same with the median in place of the mean, which a few large blocks cannot move.
/// Equation: (number of blocks) * median of β² var f/(λ² var x)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), section 4.6.
/// Units:    ratios of variances
inline double median_sensitivity(const Profile& profile) {
  std::vector<double> sorted = profile.relative;
  if (sorted.empty()) return 0;
  for (const double relative : sorted) {
    if (std::isnan(relative)) return relative;  // which has no place in an order
  }
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  return static_cast<double>(n) * (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

}  // namespace scalewise::propagation
