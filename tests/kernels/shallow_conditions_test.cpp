// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Expected numbers are of NumPy: λ₀ from arc cosines, and once more from four million draws of w
// (0.0012775); singular values by numpy.linalg.svd, similarities as traces of products.

#include "scalewise/kernels/shallow_conditions.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Eigen::MatrixXd;

namespace {

std::vector<MatrixXd> three_inputs() {
  std::vector<MatrixXd> x{MatrixXd(2, 3), MatrixXd(3, 3), MatrixXd(2, 3)};
  x[0] << 1, 0.5, -0.2, 0.3, -1, 0.4;
  x[1] << 0.1, 0.9, 0.7, -0.6, 0.2, 1.1, 0.4, 0.4, 0;
  x[2] << 0.8, -0.3, 0.5, 0.2, 0.6, -0.9;
  return x;
}

/// Tokens of length `size` along axes that no other token has.
std::vector<MatrixXd> orthogonal_inputs(Eigen::Index count, Eigen::Index tokens, double size) {
  std::vector<MatrixXd> inputs;
  for (Eigen::Index i = 0; i < count; ++i) {
    MatrixXd x = MatrixXd::Zero(tokens, count * tokens);
    for (Eigen::Index t = 0; t < tokens; ++t) x(t, i * tokens + t) = size;
    inputs.push_back(x);
  }
  return inputs;
}

}  // namespace

TEST_CASE("The eigenvalue of the convergence theorem and its bounds are NumPy's") {
  MatrixXd scores(3, 3);
  scores << 0.2, -0.1, 0.4, 0.3, 0.5, -0.2, -0.6, 0.1, 0.25;
  const ShallowScales s{.width = 100, .eta_V = 0.7, .tau_1 = 0.1};
  const ShallowEigenvalue found = shallow_eigenvalue(three_inputs(), s, scores);
  CHECK_THAT(found.lambda_0, WithinRel(0.001277293657413225, 1e-11));
  CHECK_THAT(found.lower, WithinRel(0.0003736479783258344, 1e-11));
  CHECK_THAT(found.upper, WithinRel(0.1288446635465907, 1e-13));
  CHECK_THAT(found.least_attention, WithinRel(0.3400568736568437, 1e-13));
  CHECK_THAT(found.alpha_squared(s), WithinRel(0.001277293657413225 / 4, 1e-11));
  CHECK_THROWS_AS(shallow_eigenvalue(three_inputs(), s, MatrixXd::Zero(2, 2)), InvalidInput);
  ShallowScales negative = s;
  negative.eta_H = -1;
  CHECK_THROWS_AS(shallow_eigenvalue(three_inputs(), negative, MatrixXd::Zero(3, 3)), InvalidInput);
}

TEST_CASE("Orthogonal inputs have the eigenvalue of the lemma's lower order") {
  // Mean tokens of squared length |x|²/T, at right angles: E ReLU² = 1/2 and E ReLU ReLU' = 1/(2 pi) of η_V times
  // that, so λ₀ = η_V |x|²/T (1/2 - 1/(2 pi)). The bounds have 1/4 and 1/2 in place of 0.341.
  for (const Eigen::Index tokens : {1, 2, 5}) {
    const auto inputs = orthogonal_inputs(3, tokens, 1.5);
    const ShallowScales s{.eta_V = 0.3};
    const auto features = inputs[0].cols();
    const ShallowEigenvalue found =
        shallow_eigenvalue(inputs, s, MatrixXd::Zero(features, features));
    const double one = 0.3 * 2.25 / static_cast<double>(tokens);
    CHECK_THAT(found.lambda_0, WithinRel(one * (0.5 - 0.5 / std::numbers::pi), 1e-13));
    CHECK_THAT(found.lower, WithinRel(one / 4, 1e-13));
    CHECK_THAT(found.upper, WithinRel(one / 2, 1e-13));
    CHECK_THAT(found.least_attention, WithinRel(1 / static_cast<double>(tokens), 1e-14));
  }
  // Attention to one token: the lemma's other end, ‖β‖² = 1.
  const auto inputs = orthogonal_inputs(2, 3, 1);
  const ShallowEigenvalue sharp = shallow_eigenvalue(inputs, {}, 100 * MatrixXd::Identity(6, 6));
  CHECK_THAT(sharp.least_attention, WithinRel(1.0, 1e-12));
  CHECK_THAT(sharp.upper, WithinRel(0.5, 1e-12));
}

TEST_CASE("Two equal inputs have no eigenvalue to converge by") {
  auto inputs = orthogonal_inputs(2, 2, 1);
  inputs[1] = inputs[0];
  const ShallowEigenvalue found = shallow_eigenvalue(inputs, {}, MatrixXd::Zero(4, 4));
  CHECK_THAT(found.lambda_0, WithinAbs(0, 1e-15));
  CHECK_THAT(found.lower, WithinAbs(0, 1e-15));
}

TEST_CASE("Assumptions of the convergence theorem are those of the data") {
  const ShallowAssumptions found = shallow_assumptions(three_inputs());
  CHECK_THAT(found.bound, WithinRel(1.1269427669584644, 1e-13));
  CHECK_THAT(found.independence, WithinRel(0.05819079478633548, 1e-11));
  CHECK(found.dependent == 0);
  CHECK_FALSE(found.tail.exist());  // all three pairs have a similarity above 1
  CHECK(shallow_assumptions(orthogonal_inputs(4, 2, 3)).hold());

  auto inputs = orthogonal_inputs(2, 2, 1);
  inputs[1].row(1) = 2 * inputs[1].row(0);
  const ShallowAssumptions dependent = shallow_assumptions(inputs);
  CHECK(dependent.dependent == 1);
  CHECK_FALSE(dependent.hold());
  const std::vector<MatrixXd> tall{MatrixXd::Random(4, 3)};  // more tokens than features
  CHECK(shallow_assumptions(tall).dependent == 1);
}

TEST_CASE("A tail of similarities has the exponents that its sample allows") {
  // ln(-ln(k/(m+1)))/ln t by hand; below 1 a lower bound, above 1 an upper one.
  const TailExponents below = tail_exponents({0.2, 0.5, 0.1});
  CHECK_THAT(below.least, WithinRel(std::log(std::log(4.0 / 3)) / std::log(0.1), 1e-14));
  CHECK(std::isinf(below.most));
  CHECK(below.exist());
  const TailExponents both = tail_exponents({3, 0.1});
  CHECK_THAT(both.most, WithinRel(std::log(std::log(3.0)) / std::log(3.0), 1e-14));
  CHECK_THAT(both.least, WithinRel(std::log(std::log(1.5)) / std::log(0.1), 1e-14));
  CHECK_FALSE(both.exist());
  CHECK_FALSE(tail_exponents({2, 2, 2}).exist());
  CHECK_FALSE(tail_exponents({1, 1}).exist());
  CHECK(tail_exponents({0, 0}).exist());
  CHECK(tail_exponents({}).exist());
}

TEST_CASE("Widths that are enough grow as the theorems' powers of the samples") {
  // LeCun and He, n³ and NTK, n² with d_m^-1/2; NTK, n with d_m^-1, which is stated for it alone.
  CHECK(width_power(false, 0.5) == 3);
  CHECK(width_power(true, 0.5) == 2);
  CHECK(width_power(true, 1) == 1);
  CHECK_FALSE(width_power(false, 1));
}
