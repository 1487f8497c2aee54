// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scalewise/policy/activation_product.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::propagation {

/// Twice the mean product of two ReLUs, the correlation that the next linear layer sees.
/// Equation: F(r) = 2 E[relu(x) relu(y)] = r/2 + √(1-r²)/π + r asin(r)/π
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), B.2; paper_simple: Table 2,
///           F(r) ≈ 1/π + r/2 + (1/2 - 1/π) r², off by at most 0.0075 (at 0.77).
/// Shapes:   x, y standard normal with correlation r
/// Requires: -1 <= r <= 1, up to rounding.
inline double relu_product(double r, Reading reading = Reading::corrected) {
  constexpr double over_pi = std::numbers::inv_pi;
  if (reading == Reading::paper_simple) return over_pi + r / 2 + (0.5 - over_pi) * r * r;
  r = std::clamp(r, -1.0, 1.0);
  return r / 2 + over_pi * (std::sqrt(1 - r * r) + r * std::asin(r));
}

/// Twice the mean product of two ReLUs' slopes.
/// Equation: H(r) = 2 P(x > 0, y > 0) = 1/2 + asin(r)/π
/// Source:   as relu_product.
/// Shapes:   x, y standard normal with correlation r
inline double relu_slope_product(double r) {
  return 2 * policy::activation_slope_product({Activation::relu, 1}, {Activation::relu, 1}, r);
}

using policy::gelu_product;
using policy::gelu_slope_product;

/// ReLU of a normal activation of mean zero.
/// Equation: mean √(s/2π), var = s/2 (1 - 1/π), cov = s (F(r)/2 - 1/2π)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.4; paper_simple: Table 1,
///           corr ≈ 0.7 r + 0.3 r², off by at most 0.0061.
/// Accuracy: 4e-14 against quadrature.
/// The factor 1 - 1/π belongs to the variance only: the next layer sees the second moment s/2.
inline SignalMoments relu(const SignalMoments& x, Reading reading = Reading::corrected) {
  constexpr double over_two_pi = std::numbers::inv_pi / 2;
  const double r = x.correlation();
  const double variance = x.variance / 2 * (1 - std::numbers::inv_pi);
  const double covariance = reading == Reading::paper_simple
                                ? variance * (0.7 * r + 0.3 * r * r)
                                : x.variance * (relu_product(r) / 2 - over_two_pi);
  return {std::sqrt(x.variance * over_two_pi), variance, covariance};
}

/// The gradient that ReLU hands to its input x.
/// Equation: var = sg/2, cov = (1/4 + asin(r)/2π) cg
/// Source:   as relu.
inline SignalMoments relu_gradient(const SignalMoments& gradient, const SignalMoments& x) {
  return {.variance = gradient.variance / 2,
          .covariance = gradient.covariance * relu_slope_product(x.correlation()) / 2};
}

/// GELU of a normal activation of mean zero.
/// Equation: mean s/√(2π(1+s)), var = M(1) - mean², cov = M(r) - mean²
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.5.
/// Accuracy: as gelu_product.
inline SignalMoments gelu(const SignalMoments& x) {
  const double s = x.variance;
  const double mean = s * std::sqrt(std::numbers::inv_pi / 2 / (1 + s));
  return {mean, gelu_product(s, s, s) - mean * mean,
          gelu_product(s, s, x.covariance) - mean * mean};
}

/// The gradient that GELU hands to its input x.
/// Equation: var = N(1) sg, cov = N(r) cg
/// Source:   as gelu.
inline SignalMoments gelu_gradient(const SignalMoments& gradient, const SignalMoments& x) {
  return {
      .variance = gradient.variance * gelu_slope_product(x.variance, x.variance, x.variance),
      .covariance = gradient.covariance * gelu_slope_product(x.variance, x.variance, x.covariance)};
}

}  // namespace scalewise::propagation
