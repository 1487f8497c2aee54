// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Random activations of given moments, and how far formulas are from what a component made of them.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "scalewise/numeric/random.hpp"
#include "scalewise/propagation/moments.hpp"

namespace scalewise::component {

using propagation::SignalMoments;
using Matrix = Eigen::MatrixXf;  // tokens by features, or entries of a softmax by rows of scores

inline double uniform(numeric::RandomStream& stream, double low, double high) {
  return low + (high - low) * stream.uniform();
}

inline double log_uniform(numeric::RandomStream& stream, double low, double high) {
  return std::exp(uniform(stream, std::log(low), std::log(high)));
}

/// Tokens by features with the given moments: a part that tokens share, and their own.
inline Matrix draw(numeric::RandomStream& stream, Eigen::Index tokens, Eigen::Index count,
                   const SignalMoments& m) {
  Matrix x(tokens, count);
  const double shared = std::sqrt(m.covariance);
  const auto own = static_cast<float>(std::sqrt(m.variance - m.covariance));
  for (Eigen::Index f = 0; f < count; ++f) {
    const auto center = static_cast<float>(m.mean + shared * stream.normal());
    for (Eigen::Index t = 0; t < tokens; ++t) {
      x(t, f) = center + own * static_cast<float>(stream.normal());
    }
  }
  return x;
}

/// Kept with the chance 1 - p, over it.
inline Matrix mask(numeric::RandomStream& stream, Eigen::Index rows, Eigen::Index columns,
                   double p) {
  Matrix m(rows, columns);
  const auto kept = static_cast<float>(1 / (1 - p));
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = stream.uniform() < p ? 0 : kept;
  return m;
}

/// The moments of what was drawn, over all draws.
class Sample {
 public:
  void add(const Matrix& x) {
    const auto tokens = static_cast<double>(x.rows());
    for (Eigen::Index f = 0; f < x.cols(); ++f) {
      const auto column = x.col(f).cast<double>();
      const double sum = column.sum();
      const double squares = column.squaredNorm();
      mean_ += sum, squares_ += squares, products_ += sum * sum - squares;
    }
    entries_ += static_cast<double>(x.size());
    pairs_ += static_cast<double>(x.size()) * (tokens - 1);
  }

  SignalMoments moments() const {
    const double mean = mean_ / entries_;
    return {mean, squares_ / entries_ - mean * mean, products_ / pairs_ - mean * mean};
  }

  /// Of what has the mean zero, as gradients do.
  SignalMoments gradient() const {
    return {.variance = squares_ / entries_, .covariance = products_ / pairs_};
  }

 private:
  double mean_ = 0, squares_ = 0, products_ = 0, entries_ = 0, pairs_ = 0;
};

/// The inputs and outputs of a component, forward and backward.
struct Passes {
  Sample x, y;     // its input and output
  Sample g, back;  // the gradients of its output and input
};

enum Quantity : std::size_t { mean, variance, gradient, covariance, gradient_covariance };
constexpr std::array<const char*, 5> quantity_names{"mean", "variance", "gradient", "covariance",
                                                    "gradient_covariance"};
using Errors = std::array<double, 5>;

inline double percent(double predicted, double simulated, double scale) {
  return 100 * std::abs(predicted - simulated) / std::abs(scale);
}

/// Relative errors; of means and covariances over the larger of value and variance.
inline Errors errors(const Passes& p, const SignalMoments& y, const SignalMoments& back) {
  const SignalMoments seen = p.y.moments();
  const SignalMoments seen_back = p.back.gradient();
  const auto larger = [](double value, double variance) {
    return std::max(std::abs(value), variance);
  };
  return {percent(y.mean, seen.mean, larger(seen.mean, seen.variance)),
          percent(y.variance, seen.variance, seen.variance),
          percent(back.variance, seen_back.variance, seen_back.variance),
          percent(y.covariance, seen.covariance, larger(seen.covariance, seen.variance)),
          percent(back.covariance, seen_back.covariance,
                  larger(seen_back.covariance, seen_back.variance))};
}

}  // namespace scalewise::component
