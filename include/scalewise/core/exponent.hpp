// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise {

/// Exponent of one axis in a scaling: an exact fraction, plus a real part for a parameter such as
/// the meta-principled s that is no simple fraction.
/// Units:    exponent (dimensionless); its value is num/den + real.
/// Accuracy: num/den is exact and in lowest terms with den > 0; real is 0 unless it has to be.
struct Exponent {
  int num = 0;
  int den = 1;
  double real = 0;

  constexpr Exponent() = default;
  constexpr Exponent(int whole) : num(whole) {}
  constexpr Exponent(int numerator, int denominator) : num(numerator), den(denominator) {
    if (den < 0) {
      num = -num;
      den = -den;
    }
    int divisor = num < 0 ? -num : num;  // Euclid
    for (int rest = den; rest != 0;) {
      const int next = divisor % rest;
      divisor = rest;
      rest = next;
    }
    num /= divisor;
    den /= divisor;
  }

  constexpr double value() const { return static_cast<double>(num) / den + real; }
  constexpr bool is_zero() const { return num == 0 && real == 0; }
  constexpr bool is_whole() const { return den == 1 && real == 0; }

  friend constexpr bool operator==(const Exponent&, const Exponent&) = default;

  friend constexpr Exponent operator+(Exponent a, Exponent b) {
    Exponent sum(a.num * b.den + b.num * a.den, a.den * b.den);
    sum.real = a.real + b.real;
    return sum;
  }
  friend constexpr Exponent operator-(Exponent a) {
    a.num = -a.num;
    a.real = -a.real;
    return a;
  }
  friend constexpr Exponent operator-(Exponent a, Exponent b) { return a + -b; }
  friend constexpr Exponent operator*(Exponent a, Exponent b) {
    Exponent product(a.num * b.num, a.den * b.den);
    product.real = a.value() * b.real + a.real * (static_cast<double>(b.num) / b.den);
    return product;
  }
};

/// Exponent equal to a double: the fraction p/q with the smallest q <= 64 that rounds to exactly
/// that double if there is one (0.25 -> 1/4, 0.3 -> 3/10), otherwise the double itself.
/// Requires: |x| < 1e6.
constexpr Exponent exponent(double x) {
  for (int den = 1; den <= 64; ++den) {
    const double scaled = x * den;
    const int num = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    if (static_cast<double>(num) / den == x) return {num, den};
  }
  Exponent inexact;
  inexact.real = x;
  return inexact;
}

}  // namespace scalewise
