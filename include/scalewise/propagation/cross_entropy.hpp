// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::propagation {

/// Mean of the sum of squared probabilities of a softmax over independent normal logits.
/// Equation: E Σ p² = n ∫ λ φ''(λ) φ(λ)^(n-1) dλ over λ > 0, φ(λ) = E exp(-λ e^z), z of that variance
/// Source:   derived, from 1/T² = ∫ λ e^(-λT) dλ.
/// Units:    variance: of a logit. Between 1/n and 1.
/// Accuracy: relative 1e-6 up to a variance of 25.
/// Throws:   InvalidInput for fewer than one output or a variance that is negative or above 25.
inline double squared_probabilities(long n, double variance) {
  if (n < 1) throw InvalidInput("outputs", std::to_string(n), "a positive integer");
  if (!(variance >= 0 && variance <= 25)) {
    throw InvalidInput("variance of logits", number_text(variance), "a number from 0 to 25");
  }
  const auto count = static_cast<double>(n);
  if (variance < 1e-8) return 1 / count;
  const double deviation = std::sqrt(variance);
  constexpr int points = 160;  // of z, over nine deviations
  std::vector<double> weight;
  std::vector<double> exponential;
  double total = 0;
  for (int i = 0; i < points; ++i) {
    const double z = -9 + 18 * (i + 0.5) / points;
    weight.push_back(std::exp(-z * z / 2));
    exponential.push_back(std::exp(deviation * z));
    total += weight.back();
  }
  // Trapezoids in ln λ, whose integrand falls off exponentially on both sides.
  const double step = 0.05;
  double sum = 0;
  const double first = -std::log(count) - 6 * deviation - 20;
  const auto steps = static_cast<int>((6 * deviation + 5 - first) / step);
  for (int k = 0; k <= steps; ++k) {
    const double lambda = std::exp(first + k * step);
    double phi = 0;
    double second = 0;
    for (int i = 0; i < points; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double e = weight[at] * std::exp(-lambda * exponential[at]);
      phi += e;
      second += e * exponential[at] * exponential[at];
    }
    phi /= total;
    second /= total;
    sum += step * lambda * lambda * second * std::pow(phi, count - 1);
  }
  return count * sum;
}

/// The moments of the gradient of cross-entropies with respect to logits, summed over outputs.
/// Equation: var = 1 - 2/n + P, cov = same - 2/n + 1/n + (P - 1/n)(e^rv - 1)/(e^v - 1),
///           P = squared_probabilities(n, v)
/// Source:   derived: the gradient is softmax minus one-hot.
/// Shapes:   logits of variance v over networks, with correlation r between two predictions;
///           `same`: the chance that two predictions have the same target
/// Accuracy: the variance as squared_probabilities(). The covariance is so where r is 0 or 1 and for many
///           outputs, where e^v/n is small; between, its E Σ p p' = 1/n + (P - 1/n) (e^rv - 1)/(e^v - 1)
///           is interpolated and too small: with n = 256 and r = 0.6, it is 0.994, 0.94, 0.65, 0.17
///           and 0.047 of simulation for v = 1, 2, 4, 9 and 20.
/// Throws:   InvalidInput as squared_probabilities().
inline SignalMoments cross_entropy_gradient(long outputs, const SignalMoments& logits,
                                            double same) {
  const double chance = 1 / static_cast<double>(outputs);
  const double power = squared_probabilities(outputs, logits.variance);
  const double shared = logits.variance < 1e-8
                            ? logits.correlation()
                            : std::expm1(logits.covariance) / std::expm1(logits.variance);
  return {.variance = 1 - 2 * chance + power,
          .covariance = same - chance + (power - chance) * shared};
}

}  // namespace scalewise::propagation
