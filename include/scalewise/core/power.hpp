// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/core/exponent.hpp"

namespace scalewise {

/// Positive q-th root, usable in constant expressions (std::pow is not in C++20).
/// Equation: y^q = x, Newton's iteration from above.
/// Accuracy: 2 ulp for 1e-300 < x < 1e300, 1 <= q <= 64; roots of 0 and 1 are exact.
/// Requires: x >= 0, q >= 1.
constexpr double root(double x, int q) {
  if (q == 1 || x == 0 || x == 1) return x;
  if (x < 1) return 1 / root(1 / x, q);
  const auto whole_power = [](double base, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
  };
  double y = 2;
  while (whole_power(y, q) < x) y *= 2;
  for (;;) {
    const double next = ((q - 1) * y + x / whole_power(y, q - 1)) / q;
    if (next >= y) return y;
    y = next;
  }
}

/// x to the power of an exact exponent.
/// Accuracy: relative 1e-14 for the fractions that rules use; x = 1 gives exactly 1.
/// Requires: x > 0. A constant expression unless the exponent has a real part.
constexpr double power(double x, Exponent e) {
  if (e.num < 0) return 1 / power(x, -e);
  const double base = root(x, e.den);
  double result = 1;
  for (int i = 0; i < e.num; ++i) result *= base;
  return e.real == 0 ? result : result * std::pow(x, e.real);
}

}  // namespace scalewise
