// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>

namespace scalewise::check {

/// Between which two slopes a quantity may grow with size: low <= d log(quantity) / d log(size) <=
/// high. A quantity that is exactly zero has the slope -∞.
/// Units:    exponents
struct Band {
  double low = 0;
  double high = 0;

  constexpr Band() = default;
  constexpr Band(double slope) : low(slope), high(slope) {}
  constexpr Band(double least, double most) : low(least), high(most) {}

  /// Of what is exactly zero.
  static constexpr Band zero() { return -std::numeric_limits<double>::infinity(); }
  constexpr bool is_zero() const { return high == -std::numeric_limits<double>::infinity(); }

  friend constexpr bool operator==(const Band&, const Band&) = default;
};

/// The slope of a product.
constexpr Band operator+(const Band& a, const Band& b) {
  if (a.is_zero() || b.is_zero()) return Band::zero();
  return {a.low + b.low, a.high + b.high};
}

/// The slope of a quotient.
/// Requires: the divisor is not zero.
constexpr Band operator-(const Band& a, const Band& b) {
  if (a.is_zero()) return a;
  return {a.low - b.high, a.high - b.low};
}

constexpr Band operator*(double factor, const Band& a) {
  return factor < 0 ? Band(factor * a.high, factor * a.low) : Band(factor * a.low, factor * a.high);
}

/// The slope of a sum at large sizes, where the fastest term is all that counts.
constexpr Band sum(const Band& a, const Band& b) {
  return {(std::max)(a.low, b.low), (std::max)(a.high, b.high)};
}

template <class... More>
constexpr Band sum(const Band& a, const Band& b, const More&... more) {
  return sum(sum(a, b), more...);
}

/// The slope of a sum at any sizes: it grows no slower than its slowest term and no faster than the
/// fastest.
constexpr Band mixture(const Band& a, const Band& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  return {(std::min)(a.low, b.low), (std::max)(a.high, b.high)};
}

/// The slope of what cannot outgrow order one.
constexpr Band bounded(const Band& a) { return {(std::min)(a.low, 0.0), (std::min)(a.high, 0.0)}; }

}  // namespace scalewise::check
