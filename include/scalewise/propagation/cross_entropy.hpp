// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::propagation {

namespace detail {

/// Throws:   InvalidInput for fewer than one, and more than any model has.
inline void require_outputs(long n) {
  if (n >= 1 && n <= 1L << 30) return;
  throw InvalidInput("outputs", std::to_string(n), "a whole number from 1 to 2^30");
}

}  // namespace detail

/// Mean of the sum of squared probabilities of a softmax over independent normal logits.
/// Equation: E Σ p² = n ∫ λ φ''(λ) φ(λ)^(n-1) dλ over λ > 0, φ(λ) = E exp(-λ e^z), z of that variance
/// Source:   derived, from 1/T² = ∫ λ e^(-λT) dλ.
/// Units:    variance: of a logit. Between 1/n and 1.
/// Accuracy: relative 1e-6 up to a variance of 25.
/// Throws:   InvalidInput for fewer than one output or more than 2^30, or a variance that is negative or above 25.
inline double squared_probabilities(long n, double variance) {
  detail::require_outputs(n);
  if (!(variance >= 0 && variance <= 25)) {
    throw InvalidInput("variance of logits", numeric::number_text(variance),
                       "a number from 0 to 25");
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

namespace detail {

/// The averages over normal a that shared_probabilities() needs, of x e^(deviation a) = y.
struct LaplaceAverages {
  double survival = 0;  // E e^-y
  double density = 0;   // E y e^-y

  LaplaceAverages(double log_x, double deviation) {
    const double step = (std::min)(0.5, 0.4 / deviation);
    const auto points = static_cast<int>(9 / step);
    double total = 0;
    for (int i = -points; i <= points; ++i) {
      const double a = i * step;
      const double weight = std::exp(-a * a / 2);
      const double y = std::exp(log_x + deviation * a);
      const double e = weight * std::exp(-y);
      total += weight;
      survival += e;
      density += y * e;
    }
    survival /= total;
    density /= total;
  }
};

/// The averages at all places that the trapezoids of shared_probabilities() need.
/// Shapes:   a row for each ln λ, a column for each u
class SharedAverages {
 public:
  SharedAverages(long n, double variance, double common) {
    const double s = std::sqrt(common);
    const double deviation = std::sqrt(variance);
    // A step in ln λ is `every` steps in s u, so that rows have most averages in common.
    const double every = std::ceil(2 * step / s);
    const double shift = step / every;
    const auto half = static_cast<std::size_t>(std::ceil(9 * s / shift));
    points_ = 2 * half + 1;
    const double first = -std::log(static_cast<double>(n)) - 6 * deviation - 20;
    rows_ = static_cast<std::size_t>((6 * deviation + 5 - first) / step) + 1;
    for (std::size_t i = 0; i < points_; ++i) {
      const double u = (static_cast<double>(i) - static_cast<double>(half)) * shift / s;
      weight_.push_back(std::exp(-u * u / 2));
      total_ += weight_.back();
    }
    all_.reserve(rows_ * points_);
    for (std::size_t j = 0; j < rows_; ++j) {
      for (std::size_t i = 0; i < points_; ++i) {
        const double above = static_cast<double>(i) + every;  // the same place, a row before
        if (j > 0 && above < static_cast<double>(points_)) {
          all_.push_back(all_[(j - 1) * points_ + static_cast<std::size_t>(above)]);
          continue;
        }
        const double place = (static_cast<double>(i) - static_cast<double>(half)) * shift;
        all_.emplace_back(first + static_cast<double>(j) * step + place,
                          std::sqrt(variance - common));
      }
    }
  }

  /// The integral over ln λ and ln μ, for logits that go up together or against each other.
  double integral(double power, bool together) const {
    double sum = 0;
    for (std::size_t j = 0; j < rows_; ++j) {
      for (std::size_t k = 0; k <= j; ++k) {
        double both = 0;
        double others = 0;
        for (std::size_t i = 0; i < points_; ++i) {
          const LaplaceAverages& a = all_[j * points_ + i];
          const LaplaceAverages& b = all_[k * points_ + (together ? i : points_ - 1 - i)];
          both += weight_[i] * a.density * b.density;
          others += weight_[i] * a.survival * b.survival;
        }
        sum += (k < j ? 2 : 1) * both / total_ * std::pow(others / total_, power);
      }
    }
    return step * step * sum;
  }

 private:
  static constexpr double step = 0.4;

  std::size_t points_ = 0;
  std::size_t rows_ = 0;
  std::vector<double> weight_;
  double total_ = 0;
  std::vector<LaplaceAverages> all_;
};

}  // namespace detail

/// Mean of the sum of products of two softmaxes' probabilities, over normal logits z and z' that are
/// correlated output by output.
/// Equation: E Σ p p' = n ∫∫ E[e^z e^z' e^-(λ e^z + μ e^z')] (E e^-(λ e^z + μ e^z'))^(n-1) dλ dμ over λ, μ > 0;
///           z = s u + t a and z' = ±s u + t b, s² = |covariance|, t² = variance - s², make the averages
///           E_u f(λ e^su) f(μ e^±su), f(x) = E exp(-x e^ta), or with x f'(x) for f
/// Source:   derived, from 1/T = ∫ e^(-λT) dλ.
/// Units:    variance and covariance: of logits. Between 0 and 1.
/// Accuracy: relative 1e-6 up to a variance of 25: trapezoids in u, ln λ and ln μ, of analytic functions, in 1
///           to 60 ms.
/// Throws:   InvalidInput for fewer than one output or more than 2^30, a variance that is negative or above 25, and a
///           covariance that is not a number. One beyond the variance counts as the variance.
inline double shared_probabilities(long n, double variance, double covariance) {
  detail::require_outputs(n);
  if (!(variance >= 0 && variance <= 25)) {
    throw InvalidInput("variance of logits", numeric::number_text(variance),
                       "a number from 0 to 25");
  }
  if (std::isnan(covariance)) throw InvalidInput("covariance of logits", "nan", "a number");
  const auto count = static_cast<double>(n);
  const double common = (std::min)(std::abs(covariance), variance);
  if (common < 1e-12) return 1 / count;
  const detail::SharedAverages averages(n, variance, common);
  return count * averages.integral(count - 1, covariance > 0);
}

/// The moments of the gradient of cross-entropies with respect to logits, summed over outputs.
/// Equation: var = 1 - 2/n + P, cov = same - 2/n + C, P = squared_probabilities(n, v),
///           C = shared_probabilities(n, v, r v)
/// Source:   derived: the gradient is softmax minus one-hot.
/// Shapes:   logits of variance v over networks, with correlation r between two predictions;
///           `same`: the chance that two predictions have the same target
/// Accuracy: as these two.
/// Throws:   InvalidInput as these two.
inline SignalMoments cross_entropy_gradient(long outputs, const SignalMoments& logits,
                                            double same) {
  const double chance = 1 / static_cast<double>(outputs);
  const double power = squared_probabilities(outputs, logits.variance);
  const double shared = logits.covariance == logits.variance
                            ? power
                            : shared_probabilities(outputs, logits.variance, logits.covariance);
  return {.variance = 1 - 2 * chance + power, .covariance = same - 2 * chance + shared};
}

}  // namespace scalewise::propagation
