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
  if (!(p >= 1e-300 && p <= 0.5)) return std::nan("");
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

}  // namespace scalewise::numeric
