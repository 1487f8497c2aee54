// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include "scalewise/numeric/power.hpp"

namespace scalewise::policy {

/// Arc sine, usable in constant expressions.
/// Equation: Taylor's series up to 1/2, asin r = π/2 - 2 asin √((1-r)/2) above
/// Source:   Taylor's series, and half angles.
/// Units:    radians
/// Accuracy: absolute 2e-15; NaN outside [-1, 1].
constexpr double arcsin(double r) {
  constexpr double half_pi = 1.57079632679489661923;
  if (r < 0) return -arcsin(-r);
  if (r > 0.5) return half_pi - 2 * arcsin(numeric::root((1 - r) / 2, 2));
  double sum = 0;
  double term = r;
  for (int i = 1; i < 51; i += 2) {
    sum += term / i;
    term *= r * r * i / (i + 1);
  }
  return sum;
}

/// Second moment of a ReLU pair over that of one: what a ReLU makes of a correlation.
/// Equation: F(r) = r/2 + √(1-r²)/π + r asin(r)/π = 2 E[relu(x) relu(y)]
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Table 2; the arc-cosine kernel of degree 1.
/// Shapes:   x, y standard normal with correlation r.
/// Accuracy: absolute 2e-15; NaN outside [-1, 1], up to rounding.
constexpr double relu_correlation(double r) {
  constexpr double pi = 3.14159265358979323846;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double rounding = 1 + 1e-9;  // can take r a little beyond
  if (r >= 1) return r <= rounding ? 1 : nan;
  if (r <= -1) return r >= -rounding ? 0 : nan;
  return r / 2 + (numeric::root(1 - r * r, 2) + r * arcsin(r)) / pi;
}

}  // namespace scalewise::policy
