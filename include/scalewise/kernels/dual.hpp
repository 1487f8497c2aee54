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
  double root = 0;       // √v, of erf √(1+2v), of gelu √(1+v)
  double inverse = 0;    // 1/root, and 0 where v = 0
  double deviation = 0;  // √v
};

inline Spread spread(Function f, double v) {
  const double root = std::sqrt(f == Function::erf ? 1 + 2 * v : f == Function::gelu ? 1 + v : v);
  return {root, root > 0 ? 1 / root : 0, std::sqrt(v)};
}

/// The spreads of all tokens of an input.
struct Spreads {
  Eigen::RowVectorXd root, inverse, deviation;

  Spread at(Index a) const { return {root(a), inverse(a), deviation(a)}; }
};

/// Refuses variances of which erf and gelu have no products.
inline void require_products(Function f, double variance) {
  if ((f == Function::erf || f == Function::gelu) && variance > 1e150)
    throw InvalidInput("variance", numeric::number_text(variance), "at most 1e150");
}

/// Throws:   InvalidInput for variances of erf and gelu above 1e150.
inline Spreads spreads(Function f, const Array& variances) {
  require_products(f, variances.size() > 0 ? variances.maxCoeff() : 0);
  Spreads result{Eigen::RowVectorXd(variances.size()), Eigen::RowVectorXd(variances.size()),
                 Eigen::RowVectorXd(variances.size())};
  for (Index a = 0; a < variances.size(); ++a) {
    const Spread s = spread(f, variances(a));
    result.root(a) = s.root;
    result.inverse(a) = s.inverse;
    result.deviation(a) = s.deviation;
  }
  return result;
}

/// Spreads of a piece of the tokens.
struct SpreadPiece {
  Piece root, inverse, deviation;
};

inline SpreadPiece piece_of(const Spreads& s, Index begin, Index size) {
  return {s.root.segment(begin, size), s.inverse.segment(begin, size),
          s.deviation.segment(begin, size)};
}

/// v1 v2 - c² of variances v1 and v2, which is 0 where c is √(v1 v2) up to rounding.
inline Piece left_of_product(const Spread& u, const Piece& deviation, const Piece& c) {
  const Piece deviations = u.deviation * deviation;
  const Piece gap = deviations - c.abs();
  return (gap > coincident * deviations).select(gap, 0.0) * (deviations + c.abs());
}

/// dual_piece() of erf and gelu, whose angles come from D: √(1-x²) would cancel at large variances.
inline void smooth_dual_piece(Function f, const Spread& u, const SpreadPiece& v, const Piece& c,
                              Piece& value, Piece& derivative) {
  constexpr double over_pi = std::numbers::inv_pi;
  const double k = f == Function::erf ? 2 : 1;
  const Piece over_roots = u.inverse * v.inverse;
  const Piece x = k * c * over_roots;
  const Piece left = left_of_product(u, v.deviation, c);
  const Piece D = 1 + k * (u.deviation * u.deviation + v.deviation.square()) + k * k * left;
  const Piece half = over_roots.square() * D / (2 * (1 + x.abs()));  // (1-|x|)/2
  Piece angle;
  Piece sine;
  arcsine(x, half, angle, sine);
  const Piece over_root_d = 1 / D.sqrt();
  if (f == Function::erf) {
    value = 2 * over_pi * angle;
    derivative = 4 * over_pi * over_root_d;
    return;
  }
  const Piece both = 0.25 + 0.5 * over_pi * angle;    // E Φ(u)Φ(v)
  const Piece density = 0.5 * over_pi * over_root_d;  // E φ(u)φ(v)
  const Piece inverses = u.inverse * u.inverse + v.inverse.square();
  value = c * both + density * (left + c * (c * inverses));
  derivative = both + c * density * (inverses + over_root_d.square());
}

/// E f(u)f(v) and E f'(u)f'(v) for one u and a piece of v.
inline void dual_piece(Function f, const Spread& u, const SpreadPiece& v, const Piece& c,
                       Piece& value, Piece& derivative) {
  constexpr double over_pi = std::numbers::inv_pi;
  if (f == Function::identity) {
    value = c;
    derivative.setOnes(c.size());
    return;
  }
  if (f == Function::erf || f == Function::gelu) {
    return smooth_dual_piece(f, u, v, c, value, derivative);
  }
  const Piece x = u.inverse * c * v.inverse;
  Piece angle;
  Piece sine;
  arcsine(x, angle, sine);
  const Piece deviations = u.root * v.root;
  if (f == Function::relu) {
    const Piece share = 0.25 + 0.5 * over_pi * angle;
    value = deviations * (0.5 * over_pi * sine + share * clamped(x, -1, 1));
    derivative = share;
    return;
  }
  value = 2 * over_pi * deviations * (sine + angle * clamped(x, -1, 1));  // abs
  derivative = 2 * over_pi * angle;
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
/// Accuracy: absolute 1e-15 of √(v1 v2), or of 1 for erf and for derivatives, at a covariance that is
///           c up to rounding: near |c| = √(v1 v2), the derivative of relu and abs 1e-16/sin t, so at
///           most 4e-8. Compared with these equations in 400 digits for variances from 1e-300 to
///           1e100. A token of variance 0 counts as uncorrelated.
/// Throws:   InvalidInput for variances that are negative, of erf and gelu above 1e150, numbers that are not finite,
///           or a covariance beyond the variances.
inline Dual dual(Function f, double v1, double v2, double c) {
  detail::require_nonnegative(v1, "v1");
  detail::require_nonnegative(v2, "v2");
  detail::require_products(f, (std::max)(v1, v2));
  if (!(std::abs(c) <= std::sqrt(v1) * std::sqrt(v2) * (1 + 1e-8))) {
    throw InvalidInput("covariance", numeric::number_text(c), "at most the root of v1 v2 in size");
  }
  const detail::Spread u = detail::spread(f, v1);
  const detail::Spread v = detail::spread(f, v2);
  const auto one = [](double number) { return detail::Piece::Constant(1, number); };
  detail::Piece value;
  detail::Piece derivative;
  detail::dual_piece(f, u, {one(v.root), one(v.inverse), one(v.deviation)}, one(c), value,
                     derivative);
  return {value(0), derivative(0)};
}

}  // namespace scalewise::kernels
