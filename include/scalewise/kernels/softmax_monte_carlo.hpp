// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

#include "scalewise/kernels/quasi_monte_carlo.hpp"
#include "scalewise/kernels/score_basis.hpp"
#include "scalewise/kernels/score_moments.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::kernels {

namespace detail {

/// Softmax of every row over its first columns; the rest is zero.
inline void softmax_rows(Matrix<>& scores, Index keys) {
  scores.rightCols(scores.cols() - keys).setZero();
  auto seen = scores.leftCols(keys);
  seen.colwise() -= Eigen::VectorXd(seen.rowwise().maxCoeff());
  seen = seen.array().exp();
  seen.array().colwise() /= Eigen::ArrayXd(seen.rowwise().sum().array());
}

/// The scores of row a of x and of row b of x', in independent standard normals of falling
/// importance.
/// Shapes:   (T + T', dimensions)
inline Matrix<> principal_factor(const ScoreKernels& s, const ScoreBasis& basis, Index a, Index b) {
  const Index rows = s.a.rows();
  const Index columns = s.a.cols();
  const double left = s.variance * s.left_query(a);
  const double right = s.variance * s.right_query(b);
  Eigen::MatrixXd covariance(rows + columns, rows + columns);
  covariance.topLeftCorner(rows, rows) = left * basis.left * basis.left.transpose();
  covariance.bottomRightCorner(columns, columns) = right * basis.right * basis.right.transpose();
  covariance.topRightCorner(rows, columns) = s.variance * s.query_pair(a, b) * basis.left *
                                             basis.correlations.matrix().asDiagonal() *
                                             basis.right.transpose();
  covariance.bottomLeftCorner(columns, rows) = covariance.topRightCorner(rows, columns).transpose();
  const auto [values, vectors] = symmetric_eigen(covariance);
  const Eigen::VectorXd root = values.cwiseMax(0).cwiseSqrt();
  return (vectors * root.asDiagonal())
      .rowwise()
      .reverse()
      .leftCols(std::max<Index>(rows + columns - 2, 1));
}

/// Throws:   InvalidInput for scores so far apart that points seldom fall where softmax has a slope: there the slope is
///           wrong, and so is its error. Against quadrature it was 0.2 % off at 320, 9 % at 3500, and a twentieth at 3.5e5.
inline void require_seen_slopes(const Matrix<>& factor) {
  constexpr double most = 1000;
  const double deviation = factor.rowwise().norm().maxCoeff();
  if (deviation <= most) return;
  throw InvalidInput(
      "standard deviation of scores", numeric::number_text(deviation), "at most 1000",
      "normalize the inputs of attention: softmax of such scores is 0 or 1 almost everywhere");
}

/// The integrand of the moments, at given probabilities.
class SoftmaxIntegrand {
 public:
  explicit SoftmaxIntegrand(const ScoreKernels& s)
      : s_(s), b_and_a_(s.b.cwiseProduct(s.a)), b_and_ntk_(s.b.cwiseProduct(s.a_ntk)) {}

  /// Sums over points, a row each.
  /// Shapes:   p (points, T), q (points, T') -> value, value_ntk, slope, slope_ntk
  Eigen::Array4d sums(const Matrix<>& p, const Matrix<>& q) const {
    const Matrix<> p_b = p * s_.b;
    const Matrix<> q_b = q * s_.b.transpose();
    const Eigen::ArrayXd value = p_b.cwiseProduct(q).rowwise().sum();
    // ⟨B, J_p Y J_q⟩, multiplied out.
    const auto slope = [&](const Matrix<>& y, const Matrix<>& b_and_y) {
      const Matrix<> p_y = p * y;
      const Matrix<> q_y = q * y.transpose();
      const Eigen::ArrayXd both = p_y.cwiseProduct(q).rowwise().sum();
      return (p * b_and_y).cwiseProduct(q).sum() - p.cwiseProduct(q_b).cwiseProduct(q_y).sum() -
             q.cwiseProduct(p_b).cwiseProduct(p_y).sum() + (value * both).sum();
    };
    return {value.sum(), (p * s_.b_ntk).cwiseProduct(q).sum(), slope(s_.a, b_and_a_),
            slope(s_.a_ntk, b_and_ntk_)};
  }

 private:
  const ScoreKernels& s_;
  Matrix<> b_and_a_, b_and_ntk_;
};

}  // namespace detail

/// The moments of softmax over keys, by randomized quasi-Monte Carlo: one estimate per random shift.
/// Equation: averages over points u, v of the joint Gaussian of two rows' scores, p = softmax(u),
///           q = softmax(v): pᵀBq, and ⟨B, J_p Y J_q⟩ with J_p = diag(p) - p pᵀ
/// Source:   Hron et al. 2020 (arXiv:2006.10540), (8), (9) and Theorem 18: the expectations there.
/// Accuracy: the standard error over shifts; about 1e-5 of the kernel for 5 tokens with the defaults.
///           The same to the last bit for any number of threads.
/// Throws:   InvalidInput for an indefinite kernel, and scores of a standard deviation above 1000.
inline std::vector<ScoreMoments> softmax_monte_carlo(const ScoreKernels& s,
                                                     const QuasiMonteCarlo& sample) {
  sample.check();
  const Index rows = s.a.rows();
  const Index columns = s.a.cols();
  const detail::ScoreBasis basis = detail::score_basis(s.own_left, s.own_right, s.a);
  const Matrix<> normals = sample.normals(std::max<Index>(rows + columns - 2, 1));
  const detail::SoftmaxIntegrand integrand(s);
  const Index queries = s.right_queries();
  const bool itself = &s.own_left == &s.own_right;  // (b, a) is (a, b) then, with another error
  std::vector<ScoreMoments> result(static_cast<std::size_t>(sample.shifts),
                                   ScoreMoments(s.left_queries(), queries));
  numeric::parallel_for(s.left_queries() * queries, [&](Index task) {
    const Index a = task / queries;
    const Index b = task % queries;
    if (itself && b > a) return;
    const Matrix<> factor = detail::principal_factor(s, basis, a, b);
    detail::require_seen_slopes(factor);
    constexpr Index batch = 256;
    Matrix<> p;
    Matrix<> q;
    for (Index shift = 0; shift < sample.shifts; ++shift) {
      Eigen::Array4d sum = Eigen::Array4d::Zero();
      for (Index k = 0; k < sample.points; k += batch) {
        const auto z =
            normals.middleRows(shift * sample.points + k, (std::min)(batch, sample.points - k));
        p.noalias() = z * factor.topRows(rows).transpose();
        q.noalias() = z * factor.bottomRows(columns).transpose();
        detail::softmax_rows(p, s.keys(a, rows));
        detail::softmax_rows(q, s.keys(b, columns));
        sum += integrand.sums(p, q);
      }
      const Eigen::Array4d moments = sum / static_cast<double>(sample.points);
      result[static_cast<std::size_t>(shift)].set(a, b, moments);
      if (itself) result[static_cast<std::size_t>(shift)].set(b, a, moments);
    }
  });
  return result;
}

}  // namespace scalewise::kernels
