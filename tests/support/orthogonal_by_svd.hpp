// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/SVD>

#include "scalewise/dense/matrix.hpp"

namespace scalewise::test {

/// The result of Muon's iteration on a matrix, by its singular values: each goes through the polynomial
/// a s + b s³ + c s⁵ five times, from its share of the Frobenius norm on.
inline Matrix<double> orthogonal_by_svd(const Matrix<double>& g) {
  const Eigen::MatrixXd m = g;
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::ArrayXd s = svd.singularValues() / m.norm();
  for (int i = 0; i < 5; ++i) s = s * (3.4445 - 4.7750 * s.square() + 2.0315 * s.square().square());
  return svd.matrixU() * s.matrix().asDiagonal() * svd.matrixV().transpose();
}

}  // namespace scalewise::test
