// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <numbers>

#include "scalewise/theory/kernels/angle.hpp"
#include "scalewise/theory/kernels/dual.hpp"
#include "scalewise/theory/kernels/pair_kernel.hpp"

namespace scalewise::kernels::detail {

/// The dual of ReLU on a run of pairs of tokens, in place: half the time of dual_piece(), by one root
/// and no division.
/// Equation: x = K/√(v1 v2), s = √(1-x²), t = arccos|x| = s Q(|x|), angle = π-t where x > 0 and t where
///           x < 0: K' = √(v1 v2)/(2π) (s + angle x), Θ' = angle/(2π) Θ
/// Source:   as dual().
/// Accuracy: as dual(); Q by its interpolating polynomial of degree 19 in |x| - 1/2, 5e-16.
template <class Run>
void relu_run(const Run& root, const Run& inverse, Eigen::Map<Run> nngp, Eigen::Map<Run> ntk) {
  constexpr double over_2pi = 0.5 * std::numbers::inv_pi;
  const Run x = nngp * inverse;
  const Run rest = 1 - x.abs();
  // 0 within rounding of ±1 or beyond, else unchanged: a step that is 0 or 1 without a branch.
  const Run apart = ((rest - coincident) * 0x1p200).max(0.0).min(1.0);
  const Run sine = (rest * (2 - rest) * apart).sqrt();
  const Run w = 0.5 - rest;
  // clang-format off
  const Run t = sine * (1.2091995761561450193 + w * (-0.52720028256256970444 +
      w * (0.27893276820836506435 + w * (-0.15869717537995865527 + w * (0.093786063575805742112 +
      w * (-0.056733710739081073622 + w * (0.034865536448654804648 + w * (-0.021671674097554028835 +
      w * (0.013586836514903041229 + w * (-0.0085755398450048779918 + w * (0.0054423018942574052254 +
      w * (-0.0034688929942605412662 + w * (0.002215152204583282534 + w * (-0.0014215648720389548832 +
      w * (0.00093776497235067257517 + w * (-0.00060500098135974114079 + w * (0.0003128416757405175874 +
      w * (-0.00020227369724956450725 + w * (0.00027833749810731689541 +
      w * -0.00018101529276480014586)))))))))))))))))));
  // clang-format on
  const Run sign = (x * 0x1p1000).max(-1.0).min(1.0);
  const Run share = (0.25 + 0.25 * sign) - sign * (over_2pi * t);  // keeps all digits of a small t
  nngp = root * (over_2pi * sine + share * x);
  ntk *= share;
}

/// The dual of ReLU on the kernels of a pair of inputs, runs of `piece` entries through all rows;
/// `before` changes each run of both kernels first, while it is at hand.
template <class Before>
void relu_pair(nn::View<double> nngp, nn::View<double> ntk, const Spreads& left,
               const Spreads& right, const Before& before) {
  using Full = Eigen::Array<double, 1, piece>;
  Full root;
  Full inverse;
  const Index size = nngp.size();  // a buffer has no gaps between its rows
  Index a = 0;
  Index b = 0;
  for (Index begin = 0; begin < size; begin += piece) {
    const Index count = std::min(piece, size - begin);
    for (Index i = 0; i < count;) {
      const Index end = std::min(count, i + nngp.cols() - b);
      const double left_root = left.root(a);
      const double left_inverse = left.inverse(a);
      for (; i < end; ++i, ++b) {
        root(i) = left_root * right.root(b);
        inverse(i) = left_inverse * right.inverse(b);
      }
      if (b == nngp.cols()) b = 0, ++a;
    }
    if (count == piece) {
      Eigen::Map<Full> k(nngp.data() + begin);
      Eigen::Map<Full> theta(ntk.data() + begin);
      before(k, theta);
      relu_run<Full>(root, inverse, k, theta);
    } else {
      Eigen::Map<Piece> k(nngp.data() + begin, count);
      Eigen::Map<Piece> theta(ntk.data() + begin, count);
      before(k, theta);
      relu_run<Piece>(root.head(count), inverse.head(count), k, theta);
    }
  }
}

}  // namespace scalewise::kernels::detail
