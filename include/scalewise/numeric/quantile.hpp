// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

namespace scalewise::numeric {

/// The number that a standard normal variable exceeds with a given probability.
/// Equation: ½ erfc(z/√2) = p
/// Units:    p is a probability, the result standard deviations
/// Accuracy: 1e-12, for p from 1e-300 to ½.
/// NaN for other p.
inline double normal_upper_quantile(double p) {
  if (!(p >= 1e-300 && p <= 0.5)) return NAN;
  double low = 0;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// The standard normal deviate that is as rare as a deviate of Student's t.
/// Equation: z = (8ν + 1)/(8ν + 3) √(ν log(1 + t²/ν)), with the sign of t
/// Source:   Wallace 1959, Annals of Mathematical Statistics 30, p. 1121
/// Units:    t in standard errors, the result in standard deviations
/// Accuracy: of z up to 3.3: 0.07 for 3 degrees, 0.03 for 5 and 0.01 from 10 on, too large throughout.
inline double normal_deviate(double t, double degrees) {
  const double z =
      (8 * degrees + 1) / (8 * degrees + 3) * std::sqrt(degrees * std::log1p(t * t / degrees));
  return t < 0 ? -z : z;
}

/// The standard normal deviate that is as rare as a ratio of two estimates of one variance, with ν and μ degrees
/// of freedom.
/// Equation: z = ((1 - b) F^⅓ - (1 - a)) / √(b F^⅔ + a), a = 2/(9ν), b = 2/(9μ)
/// Source:   Paulson 1942, Annals of Mathematical Statistics 13, p. 233
/// Units:    standard deviations
/// Accuracy: of z from 1 to 3.1: 0.41 for μ = 3, 0.17 for 5, 0.07 for 8 and 0.04 from 20 on, too small for few.
inline double normal_deviate_of_ratio(double ratio, double above, double below) {
  const double a = 2 / (9 * above), b = 2 / (9 * below);
  const double root = std::cbrt(ratio);
  return ((1 - b) * root - (1 - a)) / std::sqrt(b * root * root + a);
}

}  // namespace scalewise::numeric
