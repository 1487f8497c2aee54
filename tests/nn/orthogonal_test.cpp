// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The direction of a matrix, against matrices whose singular values and vectors are known.

#include "scalewise/nn/orthogonal.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;
using Eigen::Index;

/// Orthogonal, with all elements at work: the mirror at the plane across a vector of normal numbers.
Matrix<double> mirror(Index size, const std::string& name) {
  numeric::RandomStream stream(3, name);
  Matrix<double> v(size, 1);
  for (Index i = 0; i < size; ++i) v(i, 0) = stream.normal();
  return Matrix<double>::Identity(size, size) - v * v.transpose() * (2 / v.squaredNorm());
}

/// The singular values of a direction: each goes through the polynomial five times, from its share of the norm on.
double iterated(double share) {
  double s = share;
  for (int i = 0; i < 5; ++i) s = 3.4445 * s - 4.7750 * s * s * s + 2.0315 * s * s * s * s * s;
  return s;
}

}  // namespace

TEST_CASE("The direction of a matrix is its iteration on singular values") {
  for (const auto& [rows, columns] :
       {std::pair<Index, Index>{1, 1}, {1, 9}, {9, 1}, {16, 16}, {12, 40}, {40, 12}}) {
    INFO(rows << " x " << columns);
    const Matrix<double> left = mirror(rows, "left"), right = mirror(columns, "right");
    Matrix<double> values = Matrix<double>::Zero(rows, columns), expected = values;
    const Index rank = std::min(rows, columns);
    for (Index i = 0; i < rank; ++i)
      values(i, i) = 1 / std::exp(0.5 * double(i));  // the last: 0.0005
    for (Index i = 0; i < rank; ++i) expected(i, i) = iterated(values(i, i) / values.norm());
    const Matrix<double> g = left * values * right;
    expected = Matrix<double>(left * expected * right);
    const Matrix<double> x = nn::orthogonal<double>(dense::read(g));
    REQUIRE(x.rows() == rows);
    REQUIRE(x.cols() == columns);
    // Rounding of 1e-16 in the smallest values grows by a⁵ = 485.
    CHECK((x - expected).cwiseAbs().maxCoeff() < 1e-13);
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
    Matrix<double> x = nn::orthogonal<double>(dense::read(g));
    INFO(ratio);
    for (const double s : {x(0, 0), x(1, 1)}) {
      CHECK(s > 0.68);
      CHECK(s < 1.21);
    }
    x.diagonal().setZero();
    CHECK(x.isZero(0));
  }
}

TEST_CASE("A matrix of zeros has no direction, and stays") {
  CHECK(nn::orthogonal<double>(dense::read(Matrix<double>(Matrix<double>::Zero(3, 2)))).isZero(0));
}
