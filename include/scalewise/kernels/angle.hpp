// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>

#include "scalewise/kernels/polynomial.hpp"

namespace scalewise::kernels::detail {

/// A piece of a row on the stack, for arithmetic without branches that compilers can vectorize.
inline constexpr Eigen::Index piece = 64;
using Piece = Eigen::Array<double, 1, Eigen::Dynamic, Eigen::RowMajor, 1, piece>;

/// Correlations that differ from ±1 by no more than rounding are ±1: the angle between two tokens
/// that coincide is zero, not the root of a rounding error.
inline constexpr double coincident = 8 * 0x1p-52;

/// Numbers moved to the nearer of two bounds. Elsewhere too `(max)` keeps Windows' macro out.
template <class Numbers>
auto clamped(const Eigen::ArrayBase<Numbers>& x, double low, double high) {
  return ((x.max)(low).min)(high);
}

/// Arc sine of x, and the cosine of that angle, where (1-|x|)/2 is known better than from x.
/// Equation: angle = asin(x), sine_of_arccos = √(1-x²), by t = acos|x| = 4 atan(√u / (1+√(1-u))),
///           u = (1-|x|)/2
/// Source:   the half-angle formulas of the tangent; coefficients fitted here.
/// Accuracy: absolute 5e-16 for |x| <= 1; atan by its interpolating polynomial of degree 11 in the
///           square of its argument, 1.3e-18.
inline void arcsine(const Piece& x, const Piece& u, Piece& angle, Piece& sine_of_arccos) {
  const Piece sine = u.sqrt();  // of t/2
  const Piece cosine = (1 - u).sqrt();
  sine_of_arccos = 2 * sine * cosine;
  const Piece z = sine / (1 + cosine);  // tan(t/4)
  const Piece w = z * z;
  constexpr Polynomial polynomial{
      0.99999999999999999874,   -0.33333333333333120948, 0.19999999999940837328,
      -0.14285714279244968487,  0.11111110744657099602,  -0.090908968014728134434,
      0.07692045194461481467,   -0.06662950246036791267, 0.058468667522751389837,
      -0.050350497953124393166, 0.037963903161110833033, -0.017803896394812563193,
  };
  const Piece t = 4 * z * w.unaryExpr(polynomial);
  constexpr double quarter_turn = 1.5707963267948966;
  angle = clamped(x * 0x1p1000, -1, 1) * (quarter_turn - t);
}

/// The same from x alone.
/// Equation: as above; |x| within rounding of 1 is 1
/// Source:   as above.
/// Accuracy: as above. Larger |x| are taken as 1.
inline void arcsine(const Piece& x, Piece& angle, Piece& sine_of_arccos) {
  const Piece bounded = clamped(x, -1, 1);
  // 0 within rounding of ±1, unchanged beyond: a step that is 0 or 1 without a branch.
  Piece u = (1 - bounded.abs()) * 0.5;
  u *= clamped((u - coincident / 2) * 0x1p200, 0, 1);
  arcsine(bounded, u, angle, sine_of_arccos);
}

}  // namespace scalewise::kernels::detail
