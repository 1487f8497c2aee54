// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "scalewise/messages/error.hpp"

namespace scalewise {

/// Exponent of one symbol in a scaling: an exact fraction, plus a real part for a parameter such as
/// the meta-principled s that is not a simple fraction.
/// Units:    exponent (dimensionless); its value is num/den + real.
/// Accuracy: num/den is exact and in lowest terms with den > 0; real is 0 unless it has to be.
struct Exponent {
  int num = 0;
  int den = 1;
  double real = 0;

  constexpr Exponent() = default;
  constexpr Exponent(int whole) : num(whole) {}
  /// Throws: InvalidInput for a denominator of 0.
  constexpr Exponent(int numerator, int denominator) : Exponent(fraction(numerator, denominator)) {}

  constexpr double value() const { return static_cast<double>(num) / den + real; }
  constexpr bool is_zero() const { return num == 0 && real == 0; }
  constexpr bool is_whole() const { return den == 1 && real == 0; }

  friend constexpr bool operator==(const Exponent&, const Exponent&) = default;

  friend constexpr Exponent operator+(Exponent a, Exponent b) {
    Exponent sum = fraction(std::int64_t{a.num} * b.den + std::int64_t{b.num} * a.den,
                            std::int64_t{a.den} * b.den);
    sum.real += a.real + b.real;
    return sum;
  }
  friend constexpr Exponent operator-(Exponent a) {
    Exponent negative = fraction(-std::int64_t{a.num}, a.den);
    negative.real -= a.real;
    return negative;
  }
  friend constexpr Exponent operator-(Exponent a, Exponent b) { return a + -b; }
  friend constexpr Exponent operator*(Exponent a, Exponent b) {
    Exponent product = fraction(std::int64_t{a.num} * b.num, std::int64_t{a.den} * b.den);
    product.real += a.value() * b.real + a.real * (static_cast<double>(b.num) / b.den);
    return product;
  }

 private:
  /// In lowest terms, or as the real part where those are not ints.
  static constexpr Exponent fraction(std::int64_t num, std::int64_t den) {
    if (den == 0) throw InvalidInput("exponent", "a fraction over 0", "a number");
    if (den < 0) {
      num = -num;
      den = -den;
    }
    std::int64_t divisor = num < 0 ? -num : num;  // Euclid
    for (std::int64_t rest = den; rest != 0;) {
      const std::int64_t next = divisor % rest;
      divisor = rest;
      rest = next;
    }
    num /= divisor;
    den /= divisor;
    constexpr std::int64_t most = 0x7fffffff;
    Exponent result;
    if (num < -most || num > most || den > most) {
      result.real = static_cast<double>(num) / static_cast<double>(den);
    } else {
      result.num = static_cast<int>(num);
      result.den = static_cast<int>(den);
    }
    return result;
  }
};

/// Exponent equal to a double: the fraction p/q with the smallest q <= 64 that rounds to exactly
/// that double if there is one (0.25 -> 1/4, 0.3 -> 3/10), otherwise the double itself.
/// From 1e6 on it is the double itself.
constexpr Exponent exponent(double x) {
  const bool small_enough = x > -1e6 && x < 1e6;
  for (int den = 1; small_enough && den <= 64; ++den) {
    const double scaled = x * den;
    const int num = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    if (static_cast<double>(num) / den == x) return {num, den};
  }
  Exponent inexact;
  inexact.real = x;
  return inexact;
}

}  // namespace scalewise
