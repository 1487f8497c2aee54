// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "scalewise/theory/kernels/softmax_monte_carlo.hpp"
#include "scalewise/theory/kernels/softmax_quadrature.hpp"

namespace scalewise::kernels {

/// The moments of softmax over keys: one exact result where SoftmaxQuadrature is affordable, always
/// for up to 3 tokens with scores that differ by less than 6 deviations, else one estimate per shift.
inline std::vector<ScoreMoments> softmax_moments(const ScoreKernels& s,
                                                 const QuasiMonteCarlo& sample) {
  const SoftmaxQuadrature rule(s);
  if (rule.affordable()) return {rule.moments()};
  return softmax_monte_carlo(s, sample);
}

}  // namespace scalewise::kernels
