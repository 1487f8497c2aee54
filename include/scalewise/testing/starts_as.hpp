// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "scalewise/numeric/quantile.hpp"
#include "scalewise/plan/initial_values.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/testing/matcher.hpp"

namespace scalewise::testing {

/// Numbers in memory, for a message that does not print them all.
template <class Scalar>
struct Numbers {
  const Scalar* data = nullptr;
  std::size_t count = 0;
};

template <class Scalar>
Numbers<Scalar> numbers(const Scalar* data, std::size_t count) {
  return {data, count};
}
template <class Range>
auto numbers(const Range& range) {
  return numbers(std::data(range), std::size(range));
}

namespace detail {

/// E z² and E z⁴ / (E z²)² of a distribution whose parent has a variance of 1.
struct StandardMoments {
  double variance = 1;
  double kurtosis = 3;
  double bound = INFINITY;  // of |z|
};

/// Equation: of a normal cut at ±2: 1 - 4 φ(2)/P, (3 E z² - 16 φ(2)/P) / (E z²)², P = erf(√2)
inline StandardMoments standard_moments(Distribution distribution) {
  switch (distribution) {
    case Distribution::uniform:
      return {1, 1.8, 1.7320508075688772};
    case Distribution::truncated_normal:
      return {0.77374130354992, 2.36553671712963, 2};
    case Distribution::normal:
    case Distribution::constant:
    case Distribution::own:
      break;
  }
  return {};
}

}  // namespace detail

/// Matches numbers that may be a tensor's before training: their count, mean and variance are the plan's, no
/// number lies where the distribution has none, and zeros are zeros. Of initial values of the model's own, only their count
/// is known.
/// Equation: the mean of n numbers lies within z σ/√n of the plan's; their variance v about it, with
///           k = 2n/(κ - 1) degrees of freedom, κ the kurtosis, within z √(2/9k) of 1 - 2/9k in (v/σ²)^(1/3)
/// Source:   Wilson and Hilferty 1931, Proceedings of the National Academy of Sciences 17, p. 684
/// Shapes:   any range of numbers, or Numbers, in any order, (rows, columns) or transposed
/// Units:    base_deviation is the standard deviation of the base model's tensor under a relative rule
/// Accuracy: of correct tensors one in a million is refused. At 1 % it was 0.9 to 1.2 % (1.4 % of 8 uniform numbers),
///           at 0.1 % it was 0.07 to 0.14 % (0.3 %), of 100000 tensors each of 8 to 512 numbers and 10000 of
///           4096, of all three distributions.
/// Throws:   InvalidInput for a base_deviation that is negative or not finite, or an error_rate that is not between 0 and 1.
class StartsAs : public Matcher<StartsAs> {
 public:
  explicit StartsAs(const Entry& entry, double base_deviation = 1, double error_rate = 1e-6)
      : name_(entry.name),
        size_(entry.size()),
        distribution_(entry.init_variance.value * base_deviation > 0 ||
                              entry.distribution == Distribution::own
                          ? entry.distribution
                          : Distribution::constant),
        mean_(entry.init_mean.value),
        deviation_(std::sqrt(entry.init_variance.value) * base_deviation),
        z_(numeric::normal_upper_quantile(error_rate / 4)) {
    scalewise::detail::require_base_deviation(base_deviation);
    if (!(error_rate > 0 && error_rate < 1))
      throw InvalidInput("error_rate", std::to_string(error_rate), "a number between 0 and 1");
  }

  template <class Values>
  std::string problem(const Values& values) const {
    return problem(std::begin(values), std::end(values));
  }
  template <class Scalar>
  std::string problem(const Numbers<Scalar>& values) const {
    return problem(values.data, values.data + values.count);
  }

  std::string expectation() const {
    if (distribution_ == Distribution::constant) return fmt::format("is {} = {:.6g}", name_, mean_);
    if (distribution_ == Distribution::own)
      return fmt::format("has the {} numbers of {}", size_, name_);
    const double variance =
        deviation_ * deviation_ * detail::standard_moments(distribution_).variance;
    return fmt::format("starts as {}: {} of mean {:.6g} and variance {:.6g}", name_,
                       word(policy::distribution_words, distribution_), mean_, variance);
  }

 private:
  template <class Iterator>
  std::string problem(Iterator begin, Iterator end) const {
    const detail::StandardMoments unit = detail::standard_moments(distribution_);
    const double rounding = 1e-6 * (std::abs(mean_) + deviation_);
    const double bound = distribution_ == Distribution::constant ? 0 : unit.bound * deviation_;
    double count = 0, sum = 0, squares = 0;
    for (Iterator at = begin; at != end; ++at, ++count) {
      if (distribution_ == Distribution::own) continue;
      const double off = static_cast<double>(*at) - mean_;
      if (!(std::abs(off) <= bound + rounding)) {
        return fmt::format("number {} is {:.6g}", count, static_cast<double>(*at));
      }
      sum += off;
      squares += off * off;
    }
    if (count != static_cast<double>(size_)) {
      return fmt::format("{} numbers, where {} has {}", count, name_, size_);
    }
    if (distribution_ == Distribution::constant || distribution_ == Distribution::own) return "";
    const double variance = deviation_ * deviation_ * unit.variance;
    const double mean_error = z_ * std::sqrt(variance / count);
    if (std::abs(sum / count) > mean_error) {
      return fmt::format("mean {:.6g}, expected {:.6g} ± {:.2g}", mean_ + sum / count, mean_,
                         mean_error);
    }
    const double degrees = 2 * count / (unit.kurtosis - 1);
    const double center = 1 - 2 / (9 * degrees), width = z_ * std::sqrt(2 / (9 * degrees));
    const double root = std::cbrt(squares / count / variance);
    if (root < center - width || root > center + width) {
      return fmt::format("variance {:.6g}, expected {:.6g} to {:.6g}", squares / count,
                         variance * cube(std::fmax(0, center - width)),
                         variance * cube(center + width));
    }
    return "";
  }

  static double cube(double x) { return x * x * x; }

  std::string name_;
  std::int64_t size_;
  Distribution distribution_;
  double mean_;
  double deviation_;
  double z_;
};

}  // namespace scalewise::testing
