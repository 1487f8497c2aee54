// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <numbers>

#include "scalewise/kernels/angle.hpp"
#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::kernels {

/// Functions of one number whose Gaussian expectations have closed forms. gelu is u Φ(u).
enum class Function { identity, relu, abs, erf, gelu };

namespace detail {

/// The functions of one token's variance v that the closed forms need.
struct Spread {
  double root = 0;     // √v, of erf √(1+2v), of gelu √(1+v)
  double inverse = 0;  // 1/root, and 0 where v = 0
};

inline Spread spread(Function f, double v) {
  const double root = std::sqrt(f == Function::erf ? 1 + 2 * v : f == Function::gelu ? 1 + v : v);
  return {root, root > 0 ? 1 / root : 0};
}

/// The spreads of all tokens of an input.
struct Spreads {
  Eigen::RowVectorXd root, inverse;

  Spread at(Index a) const { return {root(a), inverse(a)}; }
};

inline Spreads spreads(Function f, const Array& variances) {
  Spreads result{Eigen::RowVectorXd(variances.size()), Eigen::RowVectorXd(variances.size())};
  for (Index a = 0; a < variances.size(); ++a) {
    const Spread s = spread(f, variances(a));
    result.root(a) = s.root;
    result.inverse(a) = s.inverse;
  }
  return result;
}

/// E f(u)f(v) and E f'(u)f'(v) for one u and a piece of v, with roots and their inverses.
inline void dual_piece(Function f, const Spread& u, const Piece& root, const Piece& inverse,
                       const Piece& c, Piece& value, Piece& derivative) {
  constexpr double over_pi = std::numbers::inv_pi;
  if (f == Function::identity) {
    value = c;
    derivative.setOnes(c.size());
    return;
  }
  const Piece x = (f == Function::erf ? 2 * u.inverse : u.inverse) * inverse * c;
  Piece angle;
  Piece sine;
  arcsine(x, angle, sine);
  switch (f) {
    case Function::identity:
      break;
    case Function::relu: {
      const Piece share = 0.25 + 0.5 * over_pi * angle;
      value = u.root * root * (0.5 * over_pi * sine + share * clamped(x, -1, 1));
      derivative = share;
      break;
    }
    case Function::abs:
      value = 2 * over_pi * u.root * root * (sine + angle * clamped(x, -1, 1));
      derivative = 2 * over_pi * angle;
      break;
    case Function::erf:
      value = 2 * over_pi * angle;
      derivative = 4 * over_pi * u.inverse * inverse / sine;
      break;
    case Function::gelu: {
      const Piece both = 0.25 + 0.5 * over_pi * angle;       // E Φ(u)Φ(v)
      const Piece over_root_d = u.inverse * inverse / sine;  // 1/√D
      const Piece density = 0.5 * over_pi * over_root_d;     // E φ(u)φ(v)
      const Piece inverses = u.inverse * u.inverse + inverse.square();
      value = c * both +
              density * ((u.root * u.root - 1) * (root.square() - 1) + c.square() * (inverses - 1));
      derivative = both + c * density * (inverses + over_root_d.square());
      break;
    }
  }
}

}  // namespace detail

/// The expectations of products of a function and of its derivative.
struct Dual {
  double value = 0;       // E f(u) f(v)
  double derivative = 0;  // E f'(u) f'(v)
};

/// The Gaussian expectations that the kernel of a layer of activations consists of.
/// Equation: (u, v) ~ N(0, [[v1, c], [c, v2]]), t = arccos(c/√(v1 v2));
///           relu: √(v1 v2)/(2π) (sin t + (π-t) cos t) and (π-t)/(2π);
///           abs: (2/π) √(v1 v2) (sin t + (π/2-t) cos t) and 1 - 2t/π;
///           erf: (2/π) asin(2c/√((1+2v1)(1+2v2))) and (4/π)/√((1+2v1)(1+2v2) - 4c²);
///           gelu: cQ + P(v1 v2 + c²(1/a + 1/b - 1)) and Q + cP(1/a + 1/b + 1/D), with a = 1+v1,
///           b = 1+v2, D = ab - c², P = 1/(2π√D), Q = 1/4 + asin(c/√(ab))/(2π)
/// Source:   Cho and Saul 2009 (relu); Williams 1996 (erf); gelu by Gaussian integration by parts,
///           P = E φ(u)φ(v), Q = E Φ(u)Φ(v).
/// Accuracy: absolute 1e-15 of the variances; near |c| = √(v1 v2), the derivative of relu and abs
///           1e-16/sin t, so at most 2e-8. A token of variance 0 counts as uncorrelated.
/// Throws:   InvalidInput for variances that are negative, numbers that are not finite, or a
///           covariance beyond the variances.
inline Dual dual(Function f, double v1, double v2, double c) {
  detail::require_nonnegative(v1, "v1");
  detail::require_nonnegative(v2, "v2");
  if (!(std::abs(c) <= std::sqrt(v1 * v2) * (1 + 1e-8))) {
    throw InvalidInput("covariance", number_text(c), "at most the root of v1 v2 in size");
  }
  const detail::Spread u = detail::spread(f, v1);
  const detail::Spread v = detail::spread(f, v2);
  detail::Piece value;
  detail::Piece derivative;
  detail::dual_piece(f, u, detail::Piece::Constant(1, v.root),
                     detail::Piece::Constant(1, v.inverse), detail::Piece::Constant(1, c), value,
                     derivative);
  return {value(0), derivative(0)};
}

}  // namespace scalewise::kernels
