// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace scalewise::check {

/// A mean of independent measurements and how sure it is.
struct Estimate {
  double mean = std::numeric_limits<double>::quiet_NaN();            // of nothing
  double standard_error = std::numeric_limits<double>::quiet_NaN();  // of fewer than two
  std::size_t count = 0;
};

/// Mean and its standard error.
/// Equation: se = √(Σ (x - mean)²/(n - 1)/n)
/// Shapes:   samples of any number, also none
/// Units:    mean and standard error in those of the samples
/// Numbers that are not finite count as not measured.
inline Estimate estimate(std::span<const double> samples) {
  Estimate e;
  double sum = 0;
  for (const double x : samples) {
    if (!std::isfinite(x)) continue;
    sum += x;
    ++e.count;
  }
  if (e.count == 0) return e;
  const auto n = static_cast<double>(e.count);
  e.mean = sum / n;
  if (e.count == 1) return e;
  double squares = 0;
  for (const double x : samples) {
    if (std::isfinite(x)) squares += (x - e.mean) * (x - e.mean);
  }
  e.standard_error = std::sqrt(squares / (n - 1) / n);
  return e;
}

}  // namespace scalewise::check
