// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/SVD>
#include <algorithm>

#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/symmetric_eigen.hpp"

namespace scalewise::kernels::detail {

/// Deviations of scores from their mean over the keys, in independent standard normals: those of
/// row a of x are √(variance A_aa) left ξ, those of row b of x' √(variance A'_bb) right η, where
/// ξ_i and η_i correlate by correlations_i times A_ab/√(A_aa A'_bb), and nothing else correlates.
/// Softmax does not see the mean.
/// Shapes:   left (T, r), right (T', r), correlations (r), r < max(T, T')
struct ScoreBasis {
  Matrix<> left, right;
  Array correlations;
};

/// The factor of a covariance: its eigenvectors times the roots of eigenvalues, those without
/// variance left out, and its pseudo-inverse.
struct CenteredFactor {
  Matrix<> factor;   // (T, r)
  Matrix<> inverse;  // (r, T)

  /// Throws:   InvalidInput for an indefinite kernel.
  explicit CenteredFactor(const Matrix<>& kernel) {
    const Index n = kernel.rows();
    const Eigen::MatrixXd center =
        Eigen::MatrixXd::Identity(n, n).array() - 1 / static_cast<double>(n);
    const auto [values, vectors] = symmetric_eigen(center * kernel * center);
    const double scale = kernel.diagonal().cwiseAbs().maxCoeff();
    if (!kernel.allFinite() || values(0) < -1e-8 * scale) {
      throw InvalidInput("kernel of queries and keys", "indefinite or not finite",
                         "a positive semidefinite matrix");
    }
    const Index r = (values.array() > 1e-15 * scale).count();
    const Eigen::ArrayXd root = values.tail(r).array().sqrt();
    factor = vectors.rightCols(r) * root.matrix().asDiagonal();
    inverse = root.inverse().matrix().asDiagonal() * vectors.rightCols(r).transpose() * center;
  }
};

/// Source:   canonical correlations (Hotelling 1936), of the keys of two inputs.
inline ScoreBasis score_basis(const Matrix<>& own_left, const Matrix<>& own_right,
                              const Matrix<>& pair) {
  const CenteredFactor x(own_left);
  const CenteredFactor y(own_right);
  const Index p = x.factor.cols();
  const Index q = y.factor.cols();
  const Index r = (std::max)(p, q);
  if (r == 0) return {x.factor, y.factor, Array(0)};  // single tokens
  Eigen::MatrixXd cross = Eigen::MatrixXd::Zero(r, r);
  cross.topLeftCorner(p, q) = x.inverse * pair * y.inverse.transpose();
  const Eigen::JacobiSVD<Eigen::MatrixXd, Eigen::NoQRPreconditioner> svd(
      cross, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {x.factor * svd.matrixU().topRows(p), y.factor * svd.matrixV().topRows(q),
          (svd.singularValues().array().min)(1.0)};
}

/// That of an input with itself.
inline ScoreBasis score_basis(const Matrix<>& own) {
  const CenteredFactor x(own);
  return {x.factor, x.factor, Array::Ones(x.factor.cols())};
}

}  // namespace scalewise::kernels::detail
