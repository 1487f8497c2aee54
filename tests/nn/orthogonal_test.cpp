// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The direction of a matrix, against its singular values.

#include "scalewise/nn/orthogonal.hpp"

#include <Eigen/SVD>
#include <string>

#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/orthogonal_by_svd.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;
using Eigen::Index;

Matrix<double> normals(Index rows, Index columns) {
  numeric::RandomStream stream(3, std::to_string(rows) + "x" + std::to_string(columns));
  Matrix<double> m(rows, columns);
  for (Index i = 0; i < m.size(); ++i) m.data()[i] = stream.normal();
  return m;
}

Eigen::VectorXd singular_values(const Matrix<double>& m) {
  return Eigen::JacobiSVD<Eigen::MatrixXd>(Eigen::MatrixXd(m)).singularValues();
}

}  // namespace

TEST_CASE("The direction of a matrix is its iteration on singular values") {
  for (const auto& [rows, columns] :
       {std::pair<Index, Index>{1, 1}, {1, 9}, {9, 1}, {16, 16}, {12, 40}, {40, 12}}) {
    INFO(rows << " x " << columns);
    const Matrix<double> g = normals(rows, columns);
    const Matrix<double> x = nn::orthogonal<double>(dense::read(g));
    REQUIRE(x.rows() == rows);
    REQUIRE(x.cols() == columns);
    // Rounding of 1e-16 in the smallest values grows by a⁵ = 485.
    CHECK((x - orthogonal_by_svd(g)).cwiseAbs().maxCoeff() < 1e-13);
    CHECK(
        (nn::orthogonal<double>(dense::read(Matrix<double>(1e-30 * g))) - x).cwiseAbs().maxCoeff() <
        1e-13);
    const Matrix<float> coarse = nn::orthogonal<float>(dense::read(Matrix<float>(g.cast<float>())));
    CHECK((coarse.cast<double>() - x).cwiseAbs().maxCoeff() < 1e-4);
  }
}

TEST_CASE("Singular values of any size above 0.003 of the norm become 1, within a third") {
  for (double ratio = 1; ratio > 0.003; ratio /= 1.01) {
    Matrix<double> g = Matrix<double>::Zero(2, 3);
    g(0, 0) = 1;
    g(1, 1) = ratio;  // the share of the norm is ratio/√(1 + ratio²)
    const Eigen::VectorXd s = singular_values(nn::orthogonal<double>(dense::read(g)));
    INFO(ratio);
    CHECK(s.minCoeff() > 0.68);
    CHECK(s.maxCoeff() < 1.21);
  }
}

TEST_CASE("A matrix of zeros has no direction, and stays") {
  CHECK(nn::orthogonal<double>(dense::read(Matrix<double>(Matrix<double>::Zero(3, 2)))).isZero(0));
}
