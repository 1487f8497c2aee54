// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/kernels/finite_network.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
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

/// The layers of FiniteNetwork on their own, to move any one parameter.
class OpenNetwork {
 public:
  OpenNetwork(const std::vector<Layer>& layers, const FiniteSizes& sizes, std::uint64_t seed) {
    Index tokens = 3;
    Index features = 4;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::string name = scalewise::detail::layer_name(Stack::main, std::to_string(l));
      stack_.push_back(
          kernels::detail::make_finite(layers[l], sizes, tokens, features, seed, name));
    }
  }

  double loss(const std::vector<Matrix<>>& inputs, const Matrix<>& targets) {
    return (outputs(inputs).leftCols(targets.cols()) - targets).squaredNorm() / 2;
  }
  Matrix<> outputs(const std::vector<Matrix<>>& inputs) {
    for (const auto& layer : stack_) layer->clear();
    Matrix<> all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Matrix<> g = inputs[i];
      for (const auto& layer : stack_) g = layer->forward(g);
      all.conservativeResize(static_cast<Index>(i) + 1, g.cols());
      all.row(static_cast<Index>(i)) = g;
      for (std::size_t l = stack_.size(); l-- > 0;) g = stack_[l]->backward(i, g);
    }
    return all;
  }
  /// Adds to all parameters, one after the other.
  void add(const Eigen::VectorXd& change) {
    Index at = 0;
    for_each([&](Matrix<>& value, const Matrix<>&) {
      for (double& entry : value.reshaped()) entry += change(at++);
    });
  }
  Index parameters() {
    Index count = 0;
    for_each([&](Matrix<>& value, const Matrix<>&) { count += value.size(); });
    return count;
  }

 private:
  void for_each(const kernels::detail::FiniteLayer::Visit& visit) {
    for (const auto& layer : stack_) layer->for_each_parameter(visit);
  }

  std::vector<std::unique_ptr<kernels::detail::FiniteLayer>> stack_;
};

TEST_CASE("Adam moves every parameter by its moments") {
  // Algorithm 1 of Kingma and Ba, on central differences of the loss. Their error against ε moves an update by 1e-6 of it.
  const std::vector<Matrix<>> inputs = trained_inputs();
  Matrix<> targets(3, 2);
  targets << 1, -2, 0.5, 0, -1, 1;
  constexpr double h = 1e-5;
  double worst = 0;
  for (const std::vector<Layer>& layers : trained_stacks()) {
    FiniteNetwork network(layers, 3, 4, {6, 4, 3, 2}, 5);
    OpenNetwork typed(layers, {6, 4, 3, 2}, 5);
    CHECK(typed.outputs(inputs) == network.outputs(inputs));
    const Index n = typed.parameters();
    Eigen::ArrayXd m = Eigen::ArrayXd::Zero(n);
    Eigen::ArrayXd v = m;
    for (int t = 1; t <= 3; ++t) {
      Eigen::ArrayXd gradient(n);
      for (Index i = 0; i < n; ++i) {
        const auto moved = [&](double by) {
          typed.add(by * Eigen::VectorXd::Unit(n, i));
          return typed.loss(inputs, targets);
        };
        const double above = moved(h);
        const double below = moved(-2 * h);
        moved(h);
        gradient(i) = (above - below) / (2 * h);
      }
      const double loss = typed.loss(inputs, targets);
      m = 0.8 * m + 0.2 * gradient;
      v = 0.95 * v + 0.05 * gradient * gradient;
      const Eigen::ArrayXd m_hat = m / (1 - std::pow(0.8, t));
      const Eigen::ArrayXd v_hat = v / (1 - std::pow(0.95, t));
      typed.add(-0.05 * m_hat / (v_hat.sqrt() + 1e-3));
      const double before = network.adam_step(
          inputs, targets, {.rate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3});
      worst = std::max(worst, std::abs(before / loss - 1));
    }
    const Matrix<> expected = typed.outputs(inputs);
    worst = std::max(worst, (network.outputs(inputs) - expected).norm() / expected.norm());
  }
  INFO("largest relative difference " << worst);
  CHECK(worst < 1e-5);
}

TEST_CASE("Adam is PyTorch's, with its defaults") {
  // torch.optim.Adam([w], lr=0.5) of PyTorch 1.13 on ½ Σ (w x - c)² from w = 0, in double precision. Here θ is w
  // from where it starts.
  const std::vector<Matrix<>> inputs{Matrix<>::Constant(1, 1, 0.5), Matrix<>::Constant(1, 1, 1.5),
                                     Matrix<>::Constant(1, 1, -1)};
  const Eigen::Vector3d c{1, -2, 3};
  FiniteNetwork network({Dense{1, 0}, Flatten{}}, 1, 1, {1, 1, 1}, 3);
  const std::vector<Matrix<>> one{Matrix<>::Ones(1, 1)};
  const double start = network.outputs(one)(0, 0);
  const Matrix<> targets = network.outputs(inputs) + c;
  for (const double w : {-0.499999999090909, -0.986437683520144, -1.43978613760095,
                         -1.82953458617377, -2.12115698061804, -2.2945776810014}) {
    network.adam_step(inputs, targets, {.rate = 0.5});
    CHECK(std::abs(network.outputs(one)(0, 0) - start - w) < 1e-13);
  }
}

TEST_CASE("Settings of Adam outside their range are refused") {
  const std::vector<Matrix<>> inputs = trained_inputs();
  FiniteNetwork network({Dense{}, Flatten{}}, 3, 4, {2, 1, 1}, 5);
  const auto step = [&](const AdamOptions& o) {
    network.adam_step(inputs, Matrix<>::Zero(3, 1), o);
  };
  CHECK_THROWS_WITH(step({.rate = -1}), ContainsSubstring("rate"));
  CHECK_THROWS_WITH(step({.beta1 = 1}), ContainsSubstring("beta1"));
  CHECK_THROWS_WITH(step({.beta2 = -0.1}), ContainsSubstring("beta2"));
  CHECK_THROWS_WITH(step({.epsilon = 0}), ContainsSubstring("epsilon"));
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
