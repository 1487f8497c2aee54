// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/propagation/moments.hpp"

namespace scalewise::propagation {

/// A linear layer with weights of mean zero and no bias.
/// Equation: var = fan_in sw (s + mu²), cov = fan_in sw (c + mu²), mean 0
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.2, Tables 15 to 20 (row "FFN (d1.d2)").
/// Units:    weight_variance is a variance.
/// Accuracy: exact for inputs of equal moments that are independent of the weights.
constexpr SignalMoments linear(const SignalMoments& x, double fan_in, double weight_variance) {
  const double power = fan_in * weight_variance;
  const double square = x.mean * x.mean;
  return {.variance = power * (x.variance + square), .covariance = power * (x.covariance + square)};
}

/// The gradient that it hands to its input.
/// Equation: var = fan_out sw sg, cov = fan_out sw cg
/// Source:   as linear.
/// Accuracy: exact for gradients that are independent of the weights.
constexpr SignalMoments linear_gradient(const SignalMoments& gradient, double fan_out,
                                        double weight_variance) {
  return scaled(fan_out * weight_variance, gradient);
}

}  // namespace scalewise::propagation
