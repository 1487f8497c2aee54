// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <Eigen/Core>
#include <Eigen/QR>
#include <cmath>
#include <numbers>
#include <vector>

#include "scalewise/kernels/shallow_encoder.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/shallow_encoder.hpp"
#include "scalewise/policy/standard.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::kernels;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Eigen::Index;
using Eigen::MatrixXd;

namespace {

constexpr Index features = 3;

MatrixXd normal(Index rows, Index columns, std::uint64_t seed, std::string_view name) {
  numeric::RandomStream stream(seed, name);
  MatrixXd m(rows, columns);
  for (double& x : m.reshaped()) x = stream.normal();
  return m;
}

std::vector<MatrixXd> encoder_inputs() {
  return {normal(2, features, 1, "first"), normal(3, features, 2, "second"),
          normal(1, features, 3, "third")};
}

const ShallowScales scales{
    .width = 8, .eta_O = 0.7, .eta_V = 0.9, .eta_Q = 1.3, .eta_K = 0.6, .tau_0 = 0.5, .tau_1 = 0.4};

}  // namespace

/// The model of the source, with W_H, with ReLU for softmax, and with both.
std::vector<ShallowScales> all_models() {
  std::vector<ShallowScales> all(4, scales);
  all[1].eta_H = all[3].eta_H = 0.3;
  all[2].relu_scores = all[3].relu_scores = true;
  return all;
}

TEST_CASE("Gradients of the shallow encoder agree with central differences") {
  const auto inputs = encoder_inputs();
  const ShallowScales model = GENERATE(from_range(all_models()));
  ShallowEncoder encoder(features, model, 5);
  CHECK(encoder.parameters().size() == 8 * (3 * features + 1) + (model.eta_H > 0 ? 64 : 0));
  const MatrixXd gradients = encoder.gradients(inputs);
  for (Index p = 0; p < gradients.rows(); ++p) {
    const double h = 1e-5;
    const double w = encoder.parameters()(p);
    encoder.parameters()(p) = w + h;
    Eigen::VectorXd change = encoder.outputs(inputs);
    encoder.parameters()(p) = w - h;
    change -= encoder.outputs(inputs);
    encoder.parameters()(p) = w;
    // h² times a third derivative of order one, and rounding of 1e-16/h.
    for (Index i = 0; i < change.size(); ++i) {
      CHECK_THAT(gradients(p, i), WithinAbs(change(i) / (2 * h), 1e-9));
    }
  }
}

TEST_CASE("The limiting kernel is the mean over networks with orthogonal queries and keys") {
  // Columns of W_Q and W_K with exact lengths √(d_m η): then the mean over W_V and w_O is exact. With W_H, those of
  // W_V as well, and the mean is over W_H and w_O.
  const auto inputs = encoder_inputs();
  const ShallowScales model = GENERATE(from_range(all_models()));
  CAPTURE(model.eta_H, model.relu_scores);
  const auto columns = [](const char* name, double eta) -> MatrixXd {
    const MatrixXd q =
        Eigen::HouseholderQR<MatrixXd>(normal(scales.width, features, 9, name)).householderQ() *
        MatrixXd::Identity(scales.width, features);
    return q * std::sqrt(static_cast<double>(scales.width) * eta);
  };
  const MatrixXd query = columns("query", scales.eta_Q);
  const MatrixXd key = columns("key", scales.eta_K);
  const MatrixXd value = columns("value", scales.eta_V);
  const MatrixXd scores = scales.tau_0 * query.transpose() * key;
  const ShallowKernel expected = shallow_kernel(inputs, model, scores);

  constexpr int networks = 4000;
  const auto n = static_cast<Index>(inputs.size());
  std::vector<MatrixXd> sum(5, MatrixXd::Zero(n, n));
  std::vector<MatrixXd> squares = sum;
  for (int network = 0; network < networks; ++network) {
    ShallowEncoder encoder(features, model, static_cast<std::uint64_t>(network));
    encoder.parameters().segment(0, query.size()) = query.reshaped();
    encoder.parameters().segment(query.size(), key.size()) = key.reshaped();
    if (model.eta_H > 0)
      encoder.parameters().segment(2 * key.size(), key.size()) = value.reshaped();
    const ShallowKernel k = encoder.tangent_kernel(encoder.gradients(inputs));
    const MatrixXd* parts[] = {&k.output, &k.value, &k.query, &k.key, &k.hidden};
    for (std::size_t part = 0; part < 5; ++part) {
      sum[part] += *parts[part];
      squares[part] += parts[part]->cwiseAbs2();
    }
  }
  const MatrixXd* parts[] = {&expected.output, &expected.value, &expected.query, &expected.key,
                             &expected.hidden};
  for (std::size_t part = 0; part < 5; ++part) {
    for (Index i = 0; i < n * n; ++i) {
      const double mean = sum[part](i) / networks;
      const double variance = squares[part](i) / networks - mean * mean;
      CAPTURE(part, i);
      // The third input has one token: its attention does not move, but for scores that are not normalized.
      const bool still =
          (part == 2 || part == 3) && !model.relu_scores && (i / n == 2 || i % n == 2);
      if (still || (part == 4 && model.eta_H == 0)) {
        CHECK_THAT(parts[part]->coeff(i), WithinAbs(0, 1e-15));
      } else {
        // Where ReLU leaves a score of one token below zero, both are zero.
        CHECK(std::abs(parts[part]->coeff(i) - mean) <= 5 * std::sqrt(variance / networks));
        const double size = std::sqrt((*parts[part])(i / n, i / n) * (*parts[part])(i % n, i % n));
        CHECK(std::sqrt(variance / networks) <= 0.1 * size);
      }
    }
  }
}

TEST_CASE("With tau_0 = 1/d_m attention averages: a kernel of mean tokens") {
  // Two inputs of orthogonal means of length one: E ReLU ReLU = 1/2 and 1/(2 pi), E ReLU' ReLU' = 1/2.
  std::vector<MatrixXd> inputs(2, MatrixXd::Zero(2, features));
  inputs[0] << 2, 0, 1, 0, 0, -1;
  inputs[1] << 0, 1, 0, 0, 1, 0;
  const ShallowScales s{.width = 100, .tau_0 = 0.01, .tau_1 = 0.1};  // τ₁² d_m = 1
  const ShallowKernel k = shallow_kernel(inputs, s, MatrixXd::Zero(features, features));
  CHECK_THAT(k.output(0, 0), WithinRel(0.5, 1e-14));
  CHECK_THAT(k.output(0, 1), WithinRel(1 / (2 * std::numbers::pi), 1e-14));
  CHECK_THAT(k.value(1, 1), WithinRel(0.5, 1e-14));
  CHECK_THAT(k.value(0, 1), WithinAbs(0, 1e-16));
  CHECK(k.query(0, 0) > 0);
  CHECK_THAT(k.query(1, 1), WithinAbs(0, 1e-16));  // its tokens do not differ
  CHECK_THAT(smallest_eigenvalue(k.output), WithinRel(0.5 - 1 / (2 * std::numbers::pi), 1e-13));
}

TEST_CASE("A plan of the shallow encoder states its numbers") {
  Shape shape{
      .input = Input::patch, .depth = 1, .heads = 1, .context = 4, .patch_dim = 4, .classes = 1};
  shape.d_model = 16;
  const auto he = shallow_scales(make_plan(ShallowHe{}, {.model = shape, .optimizer = sgd}));
  CHECK_THAT(he.eta_O, WithinRel(2.0 / 16, 1e-15));
  CHECK_THAT(he.eta_V, WithinRel(2.0 / 4, 1e-15));
  CHECK_THAT(he.tau_0, WithinRel(1.0 / 4, 1e-15));
  CHECK(he.tau_1 == 1);
  CHECK(he.width == 16);
  const auto ntk =
      shallow_scales(make_plan(ShallowNtk{.tau0 = 1}, {.model = shape, .optimizer = sgd}));
  CHECK(ntk.eta_Q == 1);
  CHECK(ntk.eta_K == 1);
  CHECK_THAT(ntk.tau_0, WithinRel(1.0 / 16, 1e-15));
  CHECK_THAT(ntk.tau_1, WithinRel(1.0 / 4, 1e-15));
}

TEST_CASE(
    "The inequality of Polyak and Lojasiewicz holds at every step, and its bound with small "
    "steps") {
  // ‖∇l‖² >= 2 λ l with λ the smallest eigenvalue of F_pre F_preᵀ, the part of w_O, and l_t+1 <= (1 - γ λ/2) l_t.
  const auto inputs = encoder_inputs();
  ShallowScales wide = scales;
  wide.width = 200;
  ShallowEncoder encoder(features, wide, 12);
  const Eigen::VectorXd targets = normal(3, 1, 4, "targets");
  double before = 0;
  for (int step = 0; step < 60; ++step) {
    const MatrixXd gradients = encoder.gradients(inputs);
    const ShallowKernel kernel = encoder.tangent_kernel(gradients);
    const Eigen::VectorXd residual = encoder.outputs(inputs) - targets;
    const double loss = residual.squaredNorm() / 2;
    const double least = smallest_eigenvalue(kernel.output);
    CHECK(least > 0);
    CHECK((gradients * residual).squaredNorm() >= 2 * least * loss);
    if (step > 0) CHECK(loss <= before);
    const double rate = 0.2 / -smallest_eigenvalue(-kernel.total());
    encoder.step(inputs, targets, rate);
    before = (1 - rate * least / 2) * loss;
  }
}

TEST_CASE("A step of the shallow encoder goes down the kernel's way") {
  const auto inputs = encoder_inputs();
  ShallowEncoder encoder(features, scales, 11);
  const Eigen::VectorXd targets = normal(3, 1, 4, "targets");
  const Eigen::VectorXd before = encoder.outputs(inputs) - targets;
  const MatrixXd kernel = encoder.tangent_kernel(encoder.gradients(inputs)).total();
  const double rate = 1e-5;
  CHECK_THAT(encoder.step(inputs, targets, rate), WithinRel(before.squaredNorm() / 2, 1e-14));
  const Eigen::VectorXd change = encoder.outputs(inputs) - targets - before;
  // Second order in the rate, times derivatives of order one.
  CHECK((change + rate * kernel * before).norm() < 1e-8);
  CHECK((rate * kernel * before).norm() > 1e-6);
}

TEST_CASE("Bad input of the shallow encoder is refused") {
  std::vector<MatrixXd> inputs = encoder_inputs();
  const MatrixXd scores = MatrixXd::Zero(features, features);
  CHECK_THROWS_WITH(shallow_kernel({}, scales, scores), ContainsSubstring("inputs (empty)"));
  CHECK_THROWS_WITH(shallow_kernel(inputs, scales, MatrixXd::Zero(2, 2)),
                    ContainsSubstring("scores = 2 x 2"));
  inputs[1](0, 0) = std::nan("");
  CHECK_THROWS_WITH(shallow_kernel(inputs, scales, scores), ContainsSubstring("inputs[1]"));
  inputs[1] = MatrixXd::Ones(2, 2);
  CHECK_THROWS_WITH(ShallowEncoder(features, scales, 1).outputs(inputs),
                    ContainsSubstring("inputs[1] = 2 x 2"));
  CHECK_THROWS_WITH(smallest_eigenvalue(MatrixXd(2, 3)), ContainsSubstring("kernel = 2 x 3"));
  ShallowScales bad = scales;
  bad.eta_V = 0;
  CHECK_THROWS_WITH(ShallowEncoder(features, bad, 1), ContainsSubstring("eta_V = 0"));
  Shape shape;
  shape.d_model = shape.vocab = shape.context = 4;
  shape.depth = shape.heads = 1;
  CHECK_THROWS_WITH(shallow_scales(make_plan(Standard{}, {.model = shape, .optimizer = sgd})),
                    ContainsSubstring("rule = standard"));
}
