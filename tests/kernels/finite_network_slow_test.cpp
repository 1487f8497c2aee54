// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <utility>
#include <vector>

#include "scalewise/kernels/finite_network.hpp"
#include "scalewise/kernels/network_gram.hpp"
#include "scalewise/kernels/regression.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

std::vector<Matrix<>> some_inputs() {
  return {kernels::detail::normal_matrix(3, 4, 1, "first", ""),
          kernels::detail::normal_matrix(3, 4, 1, "second", "")};
}

/// A layer's gradient of what enters against central differences of Σ (output * direction).
void check_backward(kernels::detail::FiniteLayer& layer, const Matrix<>& x) {
  const Matrix<> y = layer.forward(x);  // input 0
  const Matrix<> direction = kernels::detail::normal_matrix(y.rows(), y.cols(), 2, "direction", "");
  const Matrix<> gradient = layer.backward(0, direction);
  const double h = 1e-5;
  for (Index i = 0; i < x.size(); ++i) {
    Matrix<> moved = x;
    moved.data()[i] += h;
    double change = layer.forward(moved).cwiseProduct(direction).sum();
    moved.data()[i] -= 2 * h;
    change -= layer.forward(moved).cwiseProduct(direction).sum();
    // h² times third derivatives of order ten, and rounding of 1e-15/h.
    CHECK(std::abs(gradient.data()[i] - change / (2 * h)) < 1e-8);
  }
}

}  // namespace

TEST_CASE("Gradients through finite layers agree with central differences") {
  const Matrix<> x = some_inputs()[0];
  for (const Function f : {Function::relu, Function::abs, Function::erf, Function::gelu}) {
    kernels::detail::FiniteActivation activation(f);
    check_backward(activation, x);
  }
  kernels::detail::FiniteNorm norm(0.1);
  check_backward(norm, x);
  kernels::detail::FiniteDense dense({1.2, 0.3}, 4, 5, 3, "dense");
  check_backward(dense, x);
  for (const bool padded : {true, false}) {
    const Convolution filter{.sigma_w = 1.2, .sigma_b = 0.3, .padded = padded};
    kernels::detail::FiniteConvolution convolution(
        filter, kernels::detail::windows({}, 3, 3, padded), 4, 5, 3, "convolution");
    check_backward(convolution, x);
  }
  kernels::detail::FinitePool pool(LocalAveragePool{}.weights(3));
  check_backward(pool, x);
  const FiniteSizes sizes{5, 2, 3};
  SelfAttention attention;
  attention.encodings.geometry = Encodings::Geometry::string;
  attention.encodings.alpha = 0.6;
  attention.encodings.phi = 2;
  attention.sigma_q = 1.3;
  for (const auto weights :
       {SelfAttention::WeightFunction::softmax, SelfAttention::WeightFunction::identity,
        SelfAttention::WeightFunction::relu, SelfAttention::WeightFunction::abs}) {
    attention.weights = weights;
    attention.causal = !attention.causal;
    attention.encodings.in_values = weights != SelfAttention::WeightFunction::relu;
    attention.scores = attention.causal ? SelfAttention::ScoreScale::over_root_d
                                        : SelfAttention::ScoreScale::tied_over_d;
    attention.encodings.append = weights == SelfAttention::WeightFunction::identity;
    attention.encodings.alpha = attention.encodings.append ? 0.5 : 0.6;
    for (const FiniteSizes& each : {sizes, FiniteSizes{5, 2, 3, 16}}) {
      // Of few values a norm may have a third derivative of any size.
      attention.norm_heads = !attention.causal && each.value_dim == 16;
      kernels::detail::FiniteAttention layer(kernels::detail::finite_form(attention), 3, 4, each, 3,
                                             "attention");
      check_backward(layer, x);
    }
  }
  ResidualAttention residual;
  residual.encodings.alpha = 0.6;
  residual.encodings.phi = 2;
  kernels::detail::FiniteAttention layer(kernels::detail::finite_form(residual), 3, 4, {4, 2, 3}, 3,
                                         "residual");
  check_backward(layer, x);
}

TEST_CASE("The tangent kernel of one dense layer is that of its formula") {
  // One output: inputs x·y/n σ_w² + σ_b², whatever the weights.
  std::vector<Matrix<>> inputs = some_inputs();
  for (Matrix<>& x : inputs) x = x.row(0).eval();
  const GramMatrices k = finite_kernels({Dense{1.5, 0.5}}, inputs, {1, 1, 1}, 7);
  CHECK_THAT(k.ntk(0, 1),
             WithinRel(2.25 * inputs[0].row(0).dot(inputs[1].row(0)) / 4 + 0.25, 1e-13));
  CHECK_THAT(k.ntk(0, 0), WithinRel(2.25 * inputs[0].squaredNorm() / 4 + 0.25, 1e-13));
}

TEST_CASE("Kernels of finite attention networks scatter around their limit") {
  // Encodings in all their forms are in these two; values of a finite head are unbiased with
  // softmax of scores that do not depend on the weights: σ_q = 0 makes uniform attention.
  const std::vector<Matrix<>> inputs = some_inputs();
  SelfAttention attention;
  attention.sigma_q = 0;
  attention.sigma_v = 1.1;
  attention.sigma_b = 0.4;
  attention.scores = SelfAttention::ScoreScale::over_root_d;
  attention.encodings.geometry = Encodings::Geometry::string;
  attention.encodings.alpha = 0.6;
  attention.encodings.phi = 2;
  using enum Encodings::Trained;
  for (const auto& [trained, append] : {std::pair{through_root, false},
                                        {itself, false},
                                        {nothing, false},
                                        {through_root, true},
                                        {itself, true}}) {
    attention.encodings.trained = trained;
    attention.encodings.append = append;
    const double alpha = attention.encodings.alpha = append ? 0.5 : 0.6;
    const std::vector<Layer> layers{attention, GlobalAveragePool{}, Dense{1.3, 0.2}};
    constexpr int networks = 2000;
    double sum = 0;
    double squares = 0;
    double sum_nngp = 0;
    double squares_nngp = 0;
    double sum_own = 0;
    double squares_own = 0;
    for (int i = 0; i < networks; ++i) {
      const GramMatrices k =
          finite_kernels(layers, inputs, {4, 2, 2, 3}, static_cast<std::uint64_t>(i));
      sum += k.ntk(0, 1);
      squares += k.ntk(0, 1) * k.ntk(0, 1);
      sum_nngp += k.nngp(0, 1);
      squares_nngp += k.nngp(0, 1) * k.nngp(0, 1);
      sum_own += k.nngp(0, 0);
      squares_own += k.nngp(0, 0) * k.nngp(0, 0);
    }
    // By hand: mean tokens x and y, B = α x·y/4 + (1-α) r with r the mean of R; attention passes
    // 1.21 B + 0.16, the dense layer 1.69 of it and 0.04. Θ: B once for each of three matrices.
    const double dot = inputs[0].colwise().mean().dot(inputs[1].colwise().mean());
    double r = 0;
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) r += std::exp(-2.0 * (a - b) * (a - b) / 9) / 9;
    }
    const double seen = alpha * dot / 4 + (1 - alpha) * r;
    const double nngp = 1.69 * (1.21 * seen + 0.16) + 0.04;
    const double seen_own = alpha * inputs[0].colwise().mean().squaredNorm() / 4 + (1 - alpha) * r;
    const double encodings = trained == through_root ? (1 - alpha) * r
                             : trained == itself     ? (1 - alpha) / 3
                                                     : 0;
    const double ntk = nngp + 1.69 * (2 * 1.21 * seen + 0.16 + 1.21 * encodings);
    const auto within = [&](double total, double square, double expected) {
      const double mean = total / networks;
      const double error = std::sqrt((square / networks - mean * mean) / networks);
      CHECK(error < 0.2 * std::abs(expected));
      CHECK(std::abs(mean - expected) < 5 * error);
    };
    within(sum_nngp, squares_nngp, nngp);
    within(sum_own, squares_own, 1.69 * (1.21 * seen_own + 0.16) + 0.04);
    within(sum, squares, ntk);
  }
}

TEST_CASE("Bad input of a finite network is refused") {
  std::vector<Matrix<>> inputs = some_inputs();
  CHECK_THROWS_WITH(finite_kernels({Dense{}}, inputs, {}, 1), ContainsSubstring("no readout"));
  CHECK_THROWS_WITH(finite_kernels({Flatten{}}, {}, {}, 1), ContainsSubstring("inputs (empty)"));
  CHECK_THROWS_WITH(finite_kernels({Flatten{}}, inputs, {0, 1, 1}, 1), ContainsSubstring("sizes"));
  SelfAttention third;
  third.encodings = {Encodings::Geometry::string, 0.7};
  third.encodings.append = true;
  CHECK_THROWS_WITH(finite_kernels({third, Flatten{}}, inputs, {}, 1),
                    ContainsSubstring("alpha = 0.7"));
  inputs[1] = Matrix<>::Ones(2, 4);
  CHECK_THROWS_WITH(finite_kernels({Flatten{}}, inputs, {}, 1),
                    ContainsSubstring("inputs = 2 x 4"));
}

TEST_CASE("The posterior of a network knows an input that is near a training input") {
  const Network network({Dense{1.3, 0.4}, Nonlinearity{Function::relu}, SelfAttention{},
                         LayerNorm{}, GlobalAveragePool{}, Dense{1.3, 0.4}});
  std::vector<Matrix<>> inputs(3, Matrix<>::Ones(2, 2));
  inputs[1] << 1, -1, 0.5, 1;
  inputs[2] << 0.95, -0.9, 0.45, 1;  // near the second
  const std::vector<PreparedInput> prepared = prepare(network, inputs);
  const GramMatrices kernels = gram(3, NetworkPairs(network, prepared));

  const Eigen::Vector2d y(0, 1);  // of the first two
  const Posterior p =
      ntk_posterior(split_kernel(kernels.nngp, 2), split_kernel(kernels.ntk, 2), y, {1e-6});
  CHECK(std::abs(p.mean(0) - 1) < 0.1);
  CHECK(p.covariance(0) > 0);
  CHECK(p.covariance(0) < 0.1 * kernels.nngp(2, 2));

  const Network open({Dense{}});
  const std::vector<PreparedInput> tokens = prepare(open, inputs);
  CHECK_THROWS_WITH(gram(3, NetworkPairs(open, tokens)), ContainsSubstring("a readout"));
  inputs[1] = Matrix<>::Ones(2, 3);
  const std::vector<PreparedInput> different = prepare(network, inputs);
  CHECK_THROWS_WITH(gram(3, NetworkPairs(network, different)),
                    ContainsSubstring("input features = 2 and 3"));
}
