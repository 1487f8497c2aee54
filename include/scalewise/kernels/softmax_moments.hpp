// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "scalewise/kernels/quasi_monte_carlo.hpp"
#include "scalewise/kernels/score_moments.hpp"

// Half of what the kernels take to compile: a build that does so in one place defines this.
#ifndef SCALEWISE_KERNELS_ELSEWHERE
#include "scalewise/kernels/softmax_monte_carlo.hpp"
#include "scalewise/kernels/softmax_quadrature.hpp"
#endif

namespace scalewise::kernels {

/// The moments of softmax over keys: one exact result for up to 5 tokens where SoftmaxQuadrature is
/// affordable, otherwise one estimate per random shift.
/// Source:   Hron et al. 2020 (arXiv:2006.10540), (8), (9) and Theorem 18: the expectations there.
template <class = void>
std::vector<ScoreMoments> softmax_moments(const ScoreKernels& s, const QuasiMonteCarlo& sample);

#ifndef SCALEWISE_KERNELS_ELSEWHERE
template <class>
std::vector<ScoreMoments> softmax_moments(const ScoreKernels& s, const QuasiMonteCarlo& sample) {
  if ((std::max)(s.a.rows(), s.a.cols()) <= 5) {
    const SoftmaxQuadrature quadrature(s);
    if (quadrature.affordable()) return {quadrature.moments()};
  }
  return softmax_monte_carlo(s, sample);
}
#endif

/// The average of estimates.
/// Source:   definition.
/// Requires: at least one estimate.
inline ScoreMoments mean(const std::vector<ScoreMoments>& estimates) {
  ScoreMoments sum = estimates.front();
  for (std::size_t i = 1; i < estimates.size(); ++i) {
    sum.value += estimates[i].value;
    sum.value_ntk += estimates[i].value_ntk;
    sum.slope += estimates[i].slope;
    sum.slope_ntk += estimates[i].slope_ntk;
  }
  const auto n = static_cast<double>(estimates.size());
  for (Matrix<>* m : {&sum.value, &sum.value_ntk, &sum.slope, &sum.slope_ntk}) *m /= n;
  return sum;
}

}  // namespace scalewise::kernels
