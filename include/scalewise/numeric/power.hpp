// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>

#include "scalewise/numeric/exponent.hpp"

namespace scalewise::numeric {

namespace detail {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace detail

/// Positive q-th root, usable in constant expressions (std::pow is not in C++20).
/// Equation: y^q = x, Newton's iteration from above.
/// Units:    those of x to the power 1/q
/// Accuracy: 2 ulp for 1e-300 < x < 1e300, 1 <= q <= 64; roots of 0, 1 and infinity are exact. NaN for
///           x < 0 and for q outside [1, 1024].
constexpr double root(double x, int q) {
  if (q < 1 || q > 1024) return detail::nan;
  if (q == 1 || x == 0 || x == 1 || x == detail::infinity) return x;
  if (!(x > 0)) return detail::nan;
  if (x < 1e-300) return root(x * 0x1p512, q) / root(0x1p512, q);
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

namespace detail {

/// ln(x 2^k) of a positive x that is neither subnormal nor infinite. No branch and no loop that depends on x, so
/// that compilers vectorize loops over it.
constexpr double log_of_normal(double x, int k = 0) {
  constexpr double ln2 = 0.693147180559945309417;
  constexpr double sqrt2 = 1.41421356237309504880;
  // The builtin function, since libc++ 14 has no std::bit_cast.
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  const auto m = __builtin_bit_cast(double, (bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  const bool high = m >= sqrt2;
  const double scaled = high ? m / 2 : m;
  const auto exponent = static_cast<std::int64_t>(bits >> 52U) - 1023 + k;
  const double powers = static_cast<double>(exponent) + (high ? 1 : 0);
  const double t = (scaled - 1) / (scaled + 1);  // |t| < 0.172
  double sum = 0;
  double term = 2 * t;
  for (int i = 1; i < 25; i += 2, term *= t * t) sum += term / i;
  return powers * ln2 + sum;
}

}  // namespace detail

/// Natural logarithm, usable in constant expressions and the same on every platform.
/// Equation: x = m 2^k with m in [1/√2, √2); ln x = k ln 2 + 2 artanh((m-1)/(m+1)) by its series
/// Units:    none
/// Accuracy: 2e-16 (1 + |ln x|). Minus infinity for 0, NaN below.
constexpr double natural_log(double x) {
  if (!(x > 0)) return x == 0 ? -detail::infinity : detail::nan;
  if (x == detail::infinity) return x;
  if (x < (std::numeric_limits<double>::min)()) return detail::log_of_normal(x * 0x1p54, -54);
  return detail::log_of_normal(x);
}

/// Exponential, usable in constant expressions.
/// Equation: e^y = (e^(y/1024))^1024, the inner one by Taylor's series
/// Units:    none
/// Accuracy: relative 2e-15 (1 + |y|) for |y| < 700; 0 or infinity further out.
constexpr double exponential(double y) {
  if (y < 0) return 1 / exponential(-y);
  const int halvings = 10;
  double power = 0;  // minus 1, so that squaring does not lose digits
  double term = 1;
  for (int i = 1; i < 20; ++i) power += term *= y / (1 << halvings) / i;
  for (int i = 0; i < halvings; ++i) power = power * (2 + power);
  return 1 + power;
}

/// x to the power of a real number, usable in constant expressions.
/// Units:    those of x to the power e
/// Accuracy: relative 2e-15 (1 + |e ln x|) for |e ln x| < 700. NaN for x < 0.
constexpr double real_power(double x, double e) { return exponential(e * natural_log(x)); }

/// x to the power of an exact exponent.
/// Units:    those of x to the power e
/// Accuracy: relative 1e-14 for the fractions that rules use; x = 1 gives exactly 1. NaN for x < 0
///           unless the exponent is whole.
constexpr double power(double x, Exponent e) {
  if (e.num < -1024 || e.num > 1024) return real_power(x, e.value());
  if (e.num < 0) return 1 / power(x, -e);
  const double base = root(x, e.den);
  double result = 1;
  for (int i = 0; i < e.num; ++i) result *= base;
  return e.real == 0 || x == 1 ? result : result * real_power(x, e.real);
}

}  // namespace scalewise::numeric
