// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise::propagation {

/// The moments of an activation, or of a gradient (whose mean is zero).
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), section 2: μ, σ², r^l σ² of x, and of g.
/// Shapes:   tokens by features; averages over weights, data and dropout masks
/// Units:    covariance: of two different tokens in the same feature.
struct SignalMoments {
  double mean = 0;
  double variance = 1;
  double covariance = 0;

  /// That of two tokens; 0 where nothing varies.
  constexpr double correlation() const { return variance == 0 ? 0 : covariance / variance; }
};

/// Moments with mean zero.
/// Source:   definition.
constexpr SignalMoments correlated(double variance, double correlation) {
  return {.variance = variance, .covariance = variance * correlation};
}

/// The moments of a times the activation, given a².
/// Source:   definition.
constexpr SignalMoments scaled(double power, const SignalMoments& x) {
  return {.variance = power * x.variance, .covariance = power * x.covariance};
}

/// Those of the sum of two uncorrelated activations of mean zero.
/// Source:   definition.
constexpr SignalMoments sum(const SignalMoments& x, const SignalMoments& y) {
  return {.variance = x.variance + y.variance, .covariance = x.covariance + y.covariance};
}

}  // namespace scalewise::propagation
