// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/token_grid.hpp"

namespace scalewise::kernels {

/// Encodings E of the positions, added to or appended to the tokens of an attention layer; columns
/// of E are N(0, R), and all inputs share one E.
/// Equation: I(K) = α K + (1-α) R, where the layer sees √α g + √(1-α) E, or [g, E] with
///           α = n/(n + n_E); none: α = 1;
///           random: R_ab = ρ [same position];
///           string: R_ab = ρ exp(-φ (a/T - b/T')²), positions counted from 1, T and T' real lengths;
///           grid: R_ab = ρ exp(-φ Σ d²), d tokens apart along an axis, over its side
/// Source:   Hron et al. 2020 (arXiv:2006.10540), (11), (14), Appendix C; (14) has one and two axes, Section 6
///           any number.
struct Encodings {
  enum class Geometry { none, random, string, grid };
  /// The trained part of E. through_root: E~ of E = R^(1/2) E~; nothing; or E itself.
  enum class Trained { through_root, nothing, itself };

  Geometry geometry = Geometry::none;
  double alpha = 1;
  double rho = 1;
  double phi = 0;
  GridSides sides = {};   // of a grid
  bool in_values = true;  // or in queries and keys only
  bool append =
      false;  // finite networks: E has n (1-α)/α features of its own, next to the n of the tokens
  Trained trained = Trained::through_root;

  /// Throws:   InvalidInput for α outside [0, 1], a negative ρ or φ, or an input that is not of the
  ///           grid's size.
  void check(Index tokens) const {
    if (geometry == Geometry::none) return;
    if (!(alpha >= 0 && alpha <= 1)) {
      throw InvalidInput("alpha", numeric::number_text(alpha), "a number in [0, 1]");
    }
    detail::require_nonnegative(rho, "rho");
    detail::require_nonnegative(phi, "phi");
    if (geometry != Geometry::grid) return;
    if (sides.empty()) throw InvalidInput("sides", "(none)", "those of a grid");
    detail::check_sides(sides, tokens);
  }

  /// R between inputs of `rows` and `columns` tokens.
  /// Shapes:   r (rows, columns)
  void covariance(Index rows, Index columns, View<double> r) const {
    switch (geometry) {
      case Geometry::none:
        r.setZero();
        break;
      case Geometry::random:
        r.setZero();
        r.diagonal().setConstant(rho);
        break;
      case Geometry::string: {
        const auto b = Eigen::RowVectorXd::LinSpaced(columns, 1, static_cast<double>(columns)) /
                       static_cast<double>(columns);
        for (Index a = 0; a < rows; ++a) {
          const double at = static_cast<double>(a + 1) / static_cast<double>(rows);
          r.row(a) = rho * (-phi * (b.array() - at).square()).exp();
        }
        break;
      }
      case Geometry::grid:
        for (Index a = 0; a < rows; ++a) {
          for (Index b = 0; b < columns; ++b) r(a, b) = rho * std::exp(-phi * apart(a, b));
        }
        break;
    }
  }

  /// The same as a matrix of its own.
  /// Shapes:   (rows, columns)
  /// Throws:   InvalidInput as check().
  Matrix<> covariance(Index rows, Index columns) const {
    check(rows);
    check(columns);
    Matrix<> r(rows, columns);
    covariance(rows, columns, dense::view(r));
    return r;
  }

  /// I(K) and I(Θ), given the entries of R. Source of I(Θ): Table 1 for through_root; (37) in
  /// Appendix C.2 for E itself.
  void interpolate(PairKernel& pair, const auto& r) const {
    if (geometry == Geometry::none) return;
    auto k = pair.nngp.entries();
    auto theta = pair.ntk.entries();
    k = alpha * k + (1 - alpha) * r;
    if (trained == Trained::through_root) {
      theta = alpha * theta + (1 - alpha) * r;
    } else {
      theta *= alpha;
      if (trained == Trained::itself) pair.ntk.view().diagonal().array() += 1 - alpha;
    }
  }

 private:
  /// Σ d² of two tokens of a grid.
  double apart(Index a, Index b) const {
    double sum = 0;
    for (std::size_t axis = sides.size(); axis-- > 0;) {
      const Index side = sides[axis];
      const double d = static_cast<double>(a % side - b % side) / static_cast<double>(side);
      sum += d * d;
      a /= side;
      b /= side;
    }
    return sum;
  }
};

/// The share α of the tokens' own n features among all, n_E appended ones included.
/// Equation: α = n/(n + n_E)
/// Source:   Hron et al. 2020, Section 4.1.
/// Units:    a share from 0 to 1; features are counted
/// Throws:   InvalidInput for a number that is negative or not finite, and for no feature at all.
inline double appended_alpha(double features, double encoding_features) {
  detail::require_nonnegative(features, "features");
  detail::require_nonnegative(encoding_features, "encoding_features");
  if (features + encoding_features == 0) {
    throw InvalidInput("features", "0", "some, of tokens or of encodings");
  }
  return features / (features + encoding_features);
}

}  // namespace scalewise::kernels
