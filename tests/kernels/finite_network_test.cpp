// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/kernels/finite_network.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<Matrix<>> trained_inputs() {
  numeric::RandomStream stream(1, "inputs of finite networks");
  std::vector<Matrix<>> inputs(3, Matrix<>(3, 4));
  for (Matrix<>& x : inputs) {
    for (double& entry : x.reshaped()) entry = stream.normal();
  }
  return inputs;
}

/// Attention of all kinds, each with what else a step has to move.
std::vector<std::vector<Layer>> trained_stacks() {
  const Dense dense{1.3, 0.4};
  SelfAttention tied;  // softmax over d, queries that are keys
  tied.sigma_q = 1.2;
  tied.sigma_k = 0.7;
  tied.sigma_b = 0.3;
  tied.encodings.geometry = Encodings::Geometry::string;
  tied.encodings.alpha = 0.6;
  tied.encodings.phi = 2;
  SelfAttention itself = tied;
  itself.scores = SelfAttention::ScoreScale::over_root_d;
  itself.encodings.trained = Encodings::Trained::itself;
  itself.encodings.in_values = false;
  SelfAttention normed = tied;
  normed.norm_heads = true;
  SelfAttention relu = itself;
  relu.weights = SelfAttention::WeightFunction::relu;
  relu.encodings.trained = Encodings::Trained::nothing;
  ResidualAttention residual;
  residual.encodings.alpha = 0.6;
  residual.encodings.phi = 2;
  return {
      {dense, Nonlinearity{Function::erf}, Flatten{}, dense},
      {dense, tied, Flatten{}, dense},
      {dense, itself, LayerNorm{}, GlobalAveragePool{}, dense},
      {dense, relu, Flatten{}, dense},
      {dense, residual, Flatten{}, dense},
      {Convolution{1.3, 0.4}, Nonlinearity{Function::erf}, LocalAveragePool{}, Flatten{}, dense}};
}

TEST_CASE("A norm leaves heads that attend to nothing at zero") {
  SelfAttention relu;  // of negative scores alone: one row in sixteen
  relu.scores = SelfAttention::ScoreScale::over_root_d;
  relu.weights = SelfAttention::WeightFunction::relu;
  relu.norm_heads = true;
  FiniteNetwork network({relu, Flatten{}, Dense{1, 0}}, 3, 4, {6, 8, 3, 2}, 1);
  const std::vector<Matrix<>> inputs = trained_inputs();
  CHECK(network.outputs(inputs).allFinite());
  CHECK(network.kernels(inputs).ntk.allFinite());
}

TEST_CASE("A small step moves outputs by the tangent kernel") {
  // f(θ - γ∇) - f(θ) = -γ Θ (f - y) + O(γ²). Relative to the first term the second is γ times a curvature:
  // at most 6e-4 over these stacks and 20 seeds.
  const std::vector<Matrix<>> inputs = trained_inputs();
  Matrix<> targets(3, 1);
  targets << 1, -2, 0.5;
  constexpr double rate = 1e-6;
  double worst = 0;
  for (const std::vector<Layer>& layers : trained_stacks()) {
    FiniteNetwork network(layers, 3, 4, {6, 4, 3, 2}, 5);
    const Matrix<> before = network.outputs(inputs);
    const Eigen::VectorXd residual = before.col(0) - targets.col(0);
    const Eigen::VectorXd expected = -network.kernels(inputs).ntk * residual;
    const double loss = network.step(inputs, targets, rate);
    CHECK(std::abs(loss - residual.squaredNorm() / 2) < 1e-12 * loss);
    const Eigen::VectorXd moved = (network.outputs(inputs) - before).col(0) / rate;
    worst = std::max(worst, (moved - expected).norm() / expected.norm());
  }
  INFO("largest relative difference " << worst);
  CHECK(worst < 1e-3);
}

TEST_CASE("A network that is trained learns its targets, each feature its own") {
  const Dense dense{1.3, 0.4};
  const std::vector<Matrix<>> inputs = trained_inputs();
  Matrix<> targets(3, 2);
  targets << 1, -2, 0.5, 0, -1, 1;
  FiniteNetwork network({dense, Nonlinearity{Function::relu}, Flatten{}, dense}, 3, 4, {64, 1, 1},
                        5);
  const Eigen::MatrixXd kernel = network.kernels(inputs).ntk;
  for (int step = 0; step < 400; ++step) network.step(inputs, targets, 1 / kernel.trace());
  CHECK((network.outputs(inputs).leftCols(2) - targets).norm() < 1e-3);
}

TEST_CASE("Targets that do not fit are refused") {
  const std::vector<Matrix<>> inputs = trained_inputs();
  FiniteNetwork network({Dense{}, Flatten{}}, 3, 4, {2, 1, 1}, 5);
  CHECK_THROWS_WITH(network.step(inputs, Matrix<>::Zero(2, 1), 1), ContainsSubstring("2 rows"));
  CHECK_THROWS_WITH(network.step(inputs, Matrix<>::Zero(3, 7), 1), ContainsSubstring("7 columns"));
}

}  // namespace
