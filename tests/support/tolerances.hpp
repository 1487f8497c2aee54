// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How far numbers may be apart in the tests of the reference transformer, and why.

#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace scalewise::test {

inline constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Sums of up to some thousand products against the same sum in another order: the error of a sum
/// of n terms is at most n epsilon times the sum of their sizes, and about √n epsilon in practice.
inline constexpr double forward_relative = 1e-13;

/// The same for two computations of sums of sums, relative to the largest result; `terms` counts the
/// terms of all sums on the longest way to it. Each is rounded once in either computation, by half an
/// epsilon of its sum so far. Terms of one sign so leave at most terms * epsilon. Of both signs, the
/// result is √terms smaller than the sum of their sizes, and so are the roundings, which have both
/// signs too.
inline double accumulated(long terms, double of_epsilon = epsilon) {
  return static_cast<double>(terms) * of_epsilon;
}

/// Step of a central difference: the h that makes truncation h²/6 f''' and rounding epsilon f/h
/// equally large when f and f''' are of order one. What a multiplier scales is m x, so there the
/// step in x is that of m x, over m.
inline double step_at(double x) { return std::cbrt(epsilon) * std::max(1.0, std::abs(x)); }

/// Accepted relative error of a gradient. With h as above
///   |numeric - analytic| <= h²/6 |f'''| + k epsilon m/h = epsilon^(2/3) (|f'''|/6 + k m),
/// epsilon^(2/3) = 3.7e-11, where m is the size of what f adds up and k the roundings between a
/// parameter and f that do not cancel. So far as it is truncation, the error is relative to the
/// gradient: f''' is f' times the square of the rate at which the function changes, and 1e-6 leaves
/// room for |f'''/f'| of 1e5.
inline constexpr double gradient_relative = 1e-6;

/// k above: some twenty operations deep, roundings of both signs. Where rounding prevails, the most
/// that the whole models show is 1.7.
inline constexpr double rounding_count = 8;

/// So far as it is rounding, the error is absolute. Below this size of gradient an accepted error
/// of 1e-6 would be less than rounding alone, so this is the least denominator: 7e-4 for a loss of
/// 2.4. The smallest entries are so checked to an absolute 3e-10 m.
inline double rounding_floor(double magnitude) {
  return rounding_count * std::cbrt(epsilon) * std::cbrt(epsilon) * magnitude / gradient_relative;
}

/// Statistics of independent draws are held to this many standard errors: by chance, one test in
/// 1.7 million fails, and seeds are fixed.
inline constexpr double standard_errors = 5;

}  // namespace scalewise::test
