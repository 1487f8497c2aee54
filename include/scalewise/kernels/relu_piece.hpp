// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <numbers>

#include "scalewise/kernels/angle.hpp"
#include "scalewise/kernels/dual.hpp"
#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::kernels::detail {

/// The dense layer before ReLU, by default none.
/// Equation: K' = weight K + bias; Θ' = own K' + weight Θ
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2.
struct Front {
  double weight = 1;
  double bias = 0;
  double own = 0;  // 1 where the layer's parameters are trained
};

/// The dual of ReLU on a run of pairs of tokens, in place: less than half the time of dual_piece(), by
/// one root and no division.
/// Equation: x = K/√(v1 v2), s = √(1-x²), t = arccos|x| = s Q(|x|), angle = π-t where x > 0 and t where
///           x < 0: K' = √(v1 v2)/(2π) (s + angle x), Θ' = angle/(2π) Θ
/// Source:   as dual().
/// Accuracy: as dual(); Q by its interpolating polynomial of degree 19 in |x| - 1/2, 5e-16.
template <class Run>
void relu_run(const Run& root, const Run& inverse, Eigen::Map<Run> nngp, Eigen::Map<Run> ntk,
              const Front& front) {
  constexpr double over_2pi = 0.5 * std::numbers::inv_pi;
  const Run k = front.weight * nngp + front.bias;
  const Run theta = front.own * k + front.weight * ntk;
  const Run x = k * inverse;
  const Run size = x.abs();
  // 0 within rounding of ±1 or beyond, else 1, without a branch; likewise the sign of x.
  const Run apart = clamped(0x1p200 * (1 - size) - 0x1p200 * coincident, 0, 1);
  const Run sign = clamped(x * 0x1p1000, -1, 1);
  const Run sine = ((1 - size) * (1 + size) * apart).sqrt();
  const Run w = size - 0.5;
  constexpr Polynomial polynomial{
      0.19245008972987522071,     -0.083906530969276922227,    0.044393528850667174331,
      -0.025257439916441853339,   0.014926515611220240868,     -0.0090294505040704995425,
      0.0055490224693540580391,   -0.0034491540577023136665,   0.0021624121923282790809,
      -0.001364839556014032305,   0.0008661692482694515159,    -0.00055209146709341085883,
      0.00035255242306033882607,  -0.00022624907631079733945,  0.00014924993080804409672,
      -0.00009628889675885043208, 0.000049790299099255250248,  -0.000032192858774741705252,
      0.000044298788671610546218, -0.000028809478618744540729,
  };
  const Run q = w.unaryExpr(polynomial);
  const Run share = 0.25 + sign * (0.25 - sine * q);
  nngp = root * (over_2pi * sine + share * x);
  ntk = share * theta;
}

/// ReLU, with the dense layer before it, on the kernels of a pair of inputs, in runs of `piece`
/// entries through all rows.
/// Shapes:   left, right: of the tokens of both inputs, as they enter ReLU
inline void relu_pair(PairKernel& pair, const Spreads& left, const Spreads& right,
                      const Front& front) {
  using Full = Eigen::Array<double, 1, piece>;
  Full root;
  Full inverse;
  auto nngp = pair.nngp.entries();
  auto ntk = pair.ntk.entries();
  Index a = 0;
  Index b = 0;
  for (Index begin = 0; begin < nngp.size(); begin += piece) {
    const Index count = (std::min)(piece, nngp.size() - begin);
    for (Index i = 0; i < count;) {
      const Index end = (std::min)(count, i + pair.cols() - b);
      const double left_root = left.root(a);
      const double left_inverse = left.inverse(a);
      for (; i < end; ++i, ++b) {
        root(i) = left_root * right.root(b);
        inverse(i) = left_inverse * right.inverse(b);
      }
      if (b == pair.cols()) b = 0, ++a;
    }
    const auto run = [&]<class Run>(const Run& roots, const Run& inverses) {
      relu_run<Run>(roots, inverses, Eigen::Map<Run>(nngp.data() + begin, count),
                    Eigen::Map<Run>(ntk.data() + begin, count), front);
    };
    if (count == piece) {
      run(root, inverse);
    } else {
      run(Piece(root.head(count)), Piece(inverse.head(count)));
    }
  }
}

}  // namespace scalewise::kernels::detail
