// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::propagation {

/// LayerNorm with gain one, bias zero and no epsilon.
/// Equation: mean 0, var 1, cov = r 2/(d-1) (Γ(d/2)/Γ((d-1)/2))² 2F1(1/2, 1/2; (d+1)/2; r²),
///           the mean sample correlation of d normal pairs, r (1 - (1-r²)/2d) at large d
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.6.
/// Units:    features is the width d.
/// Accuracy: exact for normal rows, to 1e-13.
/// Requires: features >= 2.
/// Differs:  the paper has cov = r (1 - 1/d), which is wrong at order 1/d: it keeps the 1/d of
///           removing the mean and lets the sample deviation be a constant.
inline SignalMoments layer_norm(const SignalMoments& x, double features,
                                Reading reading = Reading::corrected) {
  const double r = x.correlation();
  if (reading != Reading::corrected) return correlated(1, r * (1 - 1 / features));
  const double half = features / 2;
  const double ratio = std::exp(std::lgamma(half) - std::lgamma(half - 0.5));
  double series = 1;  // 2F1 term by term: all positive, each at most r² times the one before
  double term = 1;
  for (int k = 0; k < 100'000 && term > 1e-17 * series; ++k) {
    term *= (k + 0.5) * (k + 0.5) * r * r / ((half + 0.5 + k) * (k + 1));
    series += term;
  }
  return correlated(1, r * 2 / (features - 1) * ratio * ratio * series);
}

/// Covariance of two features of one token after a LayerNorm.
/// Equation: -1/(d-1)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.6.
/// Units:    a covariance of features of variance 1
/// Accuracy: exact.
constexpr double layer_norm_feature_covariance(double features) { return -1 / (features - 1); }

/// The gradient that LayerNorm hands to its input x.
/// Equation: var = (d-2)/(d-3) sg/s, cov = (cg/s) (1 + (3r²-1)/2d)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.6, has sg/s and cg/s.
/// Accuracy: the variance is exact for normal rows, the covariance to first order in 1/d.
/// Requires: features > 3.
/// Differs:  a stack of layers uses the paper's form: successive norms of one residual stream remove
///           nearly the same direction, so that the corrections do not compound.
inline SignalMoments layer_norm_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                         double features, Reading reading = Reading::corrected) {
  const SignalMoments paper = scaled(1 / x.variance, gradient);
  if (reading != Reading::corrected) return paper;
  const double r = x.correlation();
  return {.variance = paper.variance * (features - 2) / (features - 3),
          .covariance = paper.covariance * (1 + (3 * r * r - 1) / (2 * features))};
}

}  // namespace scalewise::propagation
