// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>

// Several seconds of a compiler's time in every file: a build that compiles it in one place defines
// this.
#ifndef SCALEWISE_KERNELS_ELSEWHERE
#include <Eigen/Eigenvalues>
#endif

namespace scalewise::kernels::detail {

/// The eigenvalues of a symmetric matrix, ascending, and its eigenvectors in columns.
struct SymmetricEigen {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};

/// Reads the lower triangle.
template <class = void>
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix);

/// The eigenvalues alone.
template <class = void>
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& matrix);

#ifndef SCALEWISE_KERNELS_ELSEWHERE
template <class>
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

template <class>
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& matrix) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix, Eigen::EigenvaluesOnly)
      .eigenvalues();
}
#endif

}  // namespace scalewise::kernels::detail
