// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::propagation {

/// Softmax over n normal scores; its mean is 1/n.
/// Equation: var = (e^a - 1) (1 - e^a (2e^a - 1)/n)/n², a = (1-r) s
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.7: paper_full
///           (e^b - 1) e^2b/((n-1) e^a + 1)², b = a n/(n-1); paper_simple (e^a - 1)/n².
/// Shapes:   scores of variance s, any two of the n with correlation r
/// Accuracy: first order in 1/n; where e^a (2e^a - 1)/n is below 0.04, relative 4e-3 for a up to 1, 7e-3 at 2, 0.013 at 4.
/// Differs:  the correction of order 1/n; paper_simple is the better one of the paper's two.
/// The covariance of the result is left at zero: it concerns other rows of scores.
inline SignalMoments softmax(const SignalMoments& scores, double n,
                             Reading reading = Reading::corrected) {
  const double a = scores.variance - scores.covariance;
  const double e = std::exp(a);
  if (reading == Reading::paper_full) {
    const double b = a * n / (n - 1);
    const double sum = (n - 1) * e + 1;
    return {1 / n, std::expm1(b) * std::exp(2 * b) / (sum * sum), 0};
  }
  const double simple = std::expm1(a) / (n * n);
  if (reading == Reading::paper_simple) return {1 / n, simple, 0};
  return {1 / n, simple * (1 - e * (2 * e - 1) / n), 0};
}

/// The variance of the gradient that softmax hands to its scores.
/// Equation: sg (1-rg) e^a (1 - (2e^a - 1)²/n)/n²
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.7: paper_full sg (var + 1/n²), paper_simple
///           sg e^a/n².
/// Shapes:   gradient of variance sg, any two of one row with correlation rg
/// Accuracy: where e^a (2e^a - 1)/n is below 0.04, a = (1-r) s, relative 0.01 for a up to 1, and 0.02 at 2.
/// Differs:  the paper takes the gradients of different entries for uncorrelated; the Jacobian
///           removes what they share, hence the factor 1 - rg.
inline double softmax_gradient_variance(const SignalMoments& gradient, const SignalMoments& scores,
                                        double n, Reading reading = Reading::corrected) {
  const double e = std::exp(scores.variance - scores.covariance);
  if (reading == Reading::paper_full) {
    return gradient.variance * (softmax(scores, n, reading).variance + 1 / (n * n));
  }
  if (reading == Reading::paper_simple) return gradient.variance * e / (n * n);
  const double own = gradient.variance - gradient.covariance;
  const double correction = 1 - (2 * e - 1) * (2 * e - 1) / n;
  return own * e * correction / (n * n);
}

}  // namespace scalewise::propagation
