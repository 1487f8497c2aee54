// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Expectations over Gaussian attention scores, for scores over √d.
#pragma once

#include <algorithm>

#include "scalewise/kernels/dual.hpp"
#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::kernels {

/// The queries of cross attention, which are other tokens than keys and values.
/// Shapes:   left (Q), variances of those of x; right (Q'), of those of x'; pair (Q, Q'), their covariance
struct Queries {
  Array left, right;
  Matrix<> pair;
};

/// The kernels of a pair of inputs from which an attention layer's expectations are made.
/// Equation: scores G of x and x' are Gaussian with Cov(G_ac(x), G_bd(x')) = variance A_ab A_cd; of cross attention
///           A_ab is that of the queries
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Theorem 3, (8); Dinan, Yaida, Zhang 2023
///           (arXiv:2304.02034), (1.61).
/// Shapes:   own_left (T, T), own_right (T', T'), all others (T, T')
/// Requires: own_left and own_right are one object only if x' is x.
struct ScoreKernels {
  const Matrix<>& own_left;   // A(x,x), of what queries and keys see
  const Matrix<>& own_right;  // A(x',x')
  const Matrix<>& a;          // A(x,x')
  const Matrix<>& a_ntk;
  const Matrix<>& b;  // of what values see
  const Matrix<>& b_ntk;
  double variance = 1;  // σ_qk²
  bool causal = false;
  const Queries* cross =
      nullptr;  // of softmax; nothing: queries are of the tokens that keys are of

  /// How many queries x and x' have.
  Index left_queries() const { return cross != nullptr ? cross->left.size() : a.rows(); }
  Index right_queries() const { return cross != nullptr ? cross->right.size() : a.cols(); }
  /// The variance of a query of x or x', and the covariance of two.
  double left_query(Index q) const { return cross != nullptr ? cross->left(q) : own_left(q, q); }
  double right_query(Index q) const { return cross != nullptr ? cross->right(q) : own_right(q, q); }
  double query_pair(Index q, Index r) const {
    return cross != nullptr ? cross->pair(q, r) : a(q, r);
  }

  /// The keys that a query sees, of all tokens of its input.
  Index keys(Index query, Index tokens) const { return causal ? query + 1 : tokens; }
};

/// Contracted expectations of the weights ζ and their derivatives J_{a;cd} = ∂ζ(G)_ac/∂G_ad.
/// Equation: value_ab = Σ_cd B_cd E ζ_ac ζ'_bd; value_ntk has Θ_B for B;
///           slope_ab = M_ab[A], slope_ntk_ab = M_ab[Θ_A],
///           M_ab[Y] = Σ B_{c1c2} Y_{d1d2} E J_{a;c1d1}(x) J_{b;c2d2}(x')
/// Shapes:   (T, T'), of cross attention (Q, Q')
struct ScoreMoments {
  Matrix<> value, value_ntk, slope, slope_ntk;

  ScoreMoments(Index rows, Index columns)
      : value(rows, columns),
        value_ntk(rows, columns),
        slope(rows, columns),
        slope_ntk(rows, columns) {}

  /// All four of a pair of tokens, in this order.
  void set(Index a, Index b, const Eigen::Array4d& moments) {
    value(a, b) = moments(0);
    value_ntk(a, b) = moments(1);
    slope(a, b) = moments(2);
    slope_ntk(a, b) = moments(3);
  }
};

/// The moments of ζ(G) = G.
/// Equation: value_ab = variance A_ab Σ_cd B_cd A_cd, slope_ab = Σ_cd B_cd A_cd, and alike, over the
///           keys that a and b see
/// Source:   the definition of ScoreMoments with J_{a;cd} = [c = d].
/// Shapes:   as ScoreKernels and ScoreMoments
inline ScoreMoments identity_moments(const ScoreKernels& s) {
  const Index rows = s.a.rows();
  const Index columns = s.a.cols();
  ScoreMoments m(rows, columns);
  // Sums over the first a+1 rows and b+1 columns.
  const auto sums = [&](const auto& terms) {
    Matrix<> sum = terms;
    for (Index a = 1; a < rows; ++a) sum.row(a) += sum.row(a - 1);
    for (Index b = 1; b < columns; ++b) sum.col(b) += sum.col(b - 1);
    if (!s.causal) sum.setConstant(Matrix<>(sum)(rows - 1, columns - 1));
    return sum;
  };
  m.slope = sums(s.b.cwiseProduct(s.a));
  m.slope_ntk = sums(s.b.cwiseProduct(s.a_ntk));
  m.value = s.variance * s.a.cwiseProduct(m.slope);
  m.value_ntk = s.variance * s.a.cwiseProduct(sums(s.b_ntk.cwiseProduct(s.a)));
  return m;
}

/// The moments of relu or abs on every score.
/// Equation: E ζ_ac ζ'_bd and E J_{a;cc} J_{b;dd} are dual() at the scores' variances
/// Source:   as dual().
/// Shapes:   as ScoreKernels and ScoreMoments
/// Accuracy: that of dual(), times the number of pairs of keys.
inline ScoreMoments elementwise_moments(Function f, const ScoreKernels& s) {
  const Index rows = s.a.rows();
  const Index columns = s.a.cols();
  ScoreMoments m(rows, columns);
  const detail::Spreads left = detail::spreads(f, s.own_left.diagonal());
  const detail::Spreads right = detail::spreads(f, s.own_right.diagonal());
  detail::Piece value;
  detail::Piece derivative;
  for (Index a = 0; a < rows; ++a) {
    for (Index b = 0; b < columns; ++b) {
      const Index seen = s.keys(b, columns);
      const double root = s.variance * left.root(a) * right.root(b);
      const double correlation = s.a(a, b) * left.inverse(a) * right.inverse(b);
      Eigen::Array4d sum = Eigen::Array4d::Zero();
      for (Index d = 0; d < seen; d += detail::piece) {
        const Index size = (std::min)(detail::piece, seen - d);
        const detail::SpreadPiece keys = detail::piece_of(right, d, size);
        for (Index c = 0; c < s.keys(a, rows); ++c) {
          const auto piece_of = [&](const Matrix<>& k) {
            return k.row(c).segment(d, size).array();
          };
          // Scores' deviations and correlations are products of the tokens'.
          const double deviation = root * left.root(c);
          detail::dual_piece(f, {deviation, correlation * left.inverse(c), deviation}, keys,
                             piece_of(s.a), value, derivative);
          sum(0) += (piece_of(s.b) * value).sum();
          sum(1) += (piece_of(s.b_ntk) * value).sum();
          derivative *= piece_of(s.b);
          sum(2) += (piece_of(s.a) * derivative).sum();
          sum(3) += (piece_of(s.a_ntk) * derivative).sum();
        }
      }
      m.set(a, b, sum);
    }
  }
  return m;
}

}  // namespace scalewise::kernels
