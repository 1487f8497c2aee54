// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>

#include "scalewise/messages/error.hpp"

namespace scalewise::numeric {

/// A straight line through points.
/// Units:    error is the half width of the slope's 95 % interval; infinite with fewer than 3 points
struct Line {
  double slope = 0;
  double intercept = 0;
  double error = 0;
};

/// Quantile of Student's t with which a two-sided interval covers 95 %.
/// Source:   Abramowitz and Stegun 1972, 26.7.5: expansion about the normal quantile
/// Units:    standard errors; degrees of freedom
/// Accuracy: 0.02 for 3 degrees of freedom and 2e-3 from 5 on; exact for 1 and 2.
constexpr double t_quantile(std::size_t degrees) {
  if (degrees == 0) return HUGE_VAL;
  if (degrees == 1) return 12.706204736;
  if (degrees == 2) return 4.302652730;
  const double x = 1.959963985;
  const auto v = static_cast<double>(degrees);
  const double x3 = x * x * x;
  const double x5 = x3 * x * x;
  const double x7 = x5 * x * x;
  const double x9 = x7 * x * x;
  return x + (x3 + x) / (4 * v) + (5 * x5 + 16 * x3 + 3 * x) / (96 * v * v) +
         (3 * x7 + 19 * x5 + 17 * x3 - 15 * x) / (384 * v * v * v) +
         (79 * x9 + 776 * x7 + 1482 * x5 - 1920 * x3 - 945 * x) / (92160 * v * v * v * v);
}

/// The line of least squares. Scatter between seeds and bending both widen its interval.
/// Equation: slope = Σ(x-x̄)(y-ȳ)/Σ(x-x̄)², error = t √(Σr²/(N-2)/Σ(x-x̄)²)
/// Shapes:   x and y have one length
/// Accuracy: NaN without two different x.
/// Throws:   InvalidInput for x and y of different lengths.
inline Line fit_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) {
    throw InvalidInput("y", std::to_string(y.size()) + " numbers",
                       std::to_string(x.size()) + ", as many as x");
  }
  const auto count = static_cast<double>(x.size());
  double x_mean = 0;
  double y_mean = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x_mean += x[i] / count;
    y_mean += y[i] / count;
  }
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - x_mean) * (x[i] - x_mean);
    xy += (x[i] - x_mean) * (y[i] - y_mean);
  }
  Line line{xy / xx, y_mean - xy / xx * x_mean, HUGE_VAL};
  if (x.size() < 3) return line;
  double residual = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double r = y[i] - line.intercept - line.slope * x[i];
    residual += r * r;
  }
  line.error = t_quantile(x.size() - 2) * std::sqrt(residual / (count - 2) / xx);
  return line;
}

}  // namespace scalewise::numeric
