// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gradients of a larger model along random directions, and proof that wrong gradients are seen.

#include <cmath>
#include <string>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

Shape shape_of(long d_model, long depth, long vocab) {
  Shape s;
  s.d_model = d_model;
  s.depth = depth;
  s.heads = 6;
  s.kv_heads = 3;
  s.head_dim = 10;
  s.d_ff = 3 * d_model + 5;
  s.gated_mlp = true;
  s.context = 50;
  s.vocab = vocab;
  return s;
}

/// A model whose products span more than one tile: 4 sequences of 40 tokens.
struct Large {
  Shape shape = shape_of(48, 4, 61);
  Plan plan = make_plan("complete-p", {.model = shape, .base = shape_of(16, 2, 61)});
  Transformer<double> model{plan, {.activation = Activation::silu, .rotary = true}};
  Batch<double> batch = random_batch(shape, 4, 40, 0);

  Large() { prepare(model, plan); }
};

/// A model small enough for every entry.
struct Small {
  Shape shape = shape_of(7, 1, 5);
  Plan plan = make_plan("complete-p", {.model = shape, .base = shape_of(2, 2, 5)});
  Transformer<double> model{plan, {}};
  Batch<double> batch = random_batch(shape, 2, 3, 0);
  double loss = 0;
  Matrix<double> gradients;

  Small() {
    prepare(model, plan);
    loss = model.loss_and_gradient(batch);
    gradients = model.parameters().gradients();
  }
  Index offset(std::size_t tensor) {
    return model.parameters().value(tensor).data() - model.parameters().values().data();
  }
};

/// log2 of how the remainder f(x + h d) - f(x) - h g·d grows from one step to its double.
std::vector<double> taylor_slopes(Transformer<double>& model, const Batch<double>& batch,
                                  const Matrix<double>& gradients) {
  View<double> x = model.parameters().values();
  const Matrix<double> kept = x;
  Matrix<double> direction = normal_matrix(1, x.size(), "direction");
  direction = (direction / direction.norm() + gradients / gradients.norm()).eval();
  const double along = gradients.cwiseProduct(direction).sum();
  const double start = model.loss(batch);
  std::vector<double> remainders;
  for (const double h : {0x1p-14, 0x1p-13, 0x1p-12, 0x1p-11}) {
    x.noalias() = kept + h * direction;
    remainders.push_back(std::abs(model.loss(batch) - start - h * along));
  }
  x = kept;
  std::vector<double> slopes;
  for (std::size_t i = 0; i + 1 < remainders.size(); ++i) {
    slopes.push_back(std::log2(remainders[i + 1] / remainders[i]));
  }
  return slopes;
}

}  // namespace

TEST_CASE("The gradient of each tensor of a larger model is right along a random direction") {
  Large m;
  m.model.loss_and_gradient(m.batch);
  const Matrix<double> gradients = m.model.parameters().gradients();
  GradientError worst;
  for (std::size_t i = 0; i < m.model.parameters().size(); ++i) {
    View<double> value = m.model.parameters().value(i);
    const Matrix<double> kept = value;
    const std::string& name = m.model.parameters().name(i);
    Matrix<double> direction = normal_matrix(value.rows(), value.cols(), name);
    direction /= direction.norm();
    const double along = m.model.parameters().gradient(i).cwiseProduct(direction).sum();
    double h = 0;
    double magnitude = 1;
    const double numeric = central_difference(h, [&] {
      value = kept + h * direction;
      const double loss = m.model.loss(m.batch);
      magnitude = std::max(magnitude, loss);
      return loss;
    });
    value = kept;
    worst.offer(name, along, numeric, rounding_floor(magnitude));
  }
  INFO(worst);
  CHECK(worst.accepted());
  CHECK(worst.relative > 0);
}

TEST_CASE("What a gradient leaves out of the loss shrinks as the square of the step") {
  Large large;
  large.model.loss_and_gradient(large.batch);
  const Matrix<double> gradients = large.model.parameters().gradients();
  for (const double slope : taylor_slopes(large.model, large.batch, gradients)) {
    CHECK(std::abs(slope - 2) < 0.1);
  }
  // What a gradient that is wrong by a tenth leaves out shrinks as the step itself.
  for (const double slope : taylor_slopes(large.model, large.batch, 1.1 * gradients)) {
    CHECK(slope < 1.5);
  }
}

TEST_CASE("A gradient with one entry wrong by a ten-thousandth is not accepted") {
  Small m;
  REQUIRE(model_error(m.model, m.plan, m.batch, m.gradients).accepted());
  int planted = 0;
  for (std::size_t i = 0; i < m.model.parameters().size(); ++i) {
    Index row = 0;
    Index column = 0;
    const View<double> g = m.model.parameters().gradient(i);
    const double largest = g.cwiseAbs().maxCoeff(&row, &column);
    // Below that, a ten-thousandth is less than the accepted rounding.
    if (largest < 1e-2 * rounding_floor(m.loss)) continue;
    Matrix<double> wrong = m.gradients;
    wrong(0, m.offset(i) + row * g.cols() + column) *= 1 + 1e-4;
    const GradientError error = tensor_error(m.model, m.plan, m.batch, i, wrong);
    INFO(error);
    CHECK_FALSE(error.accepted());
    CHECK(error.where.find(m.model.parameters().name(i) + "(") == 0);
    ++planted;
  }
  CHECK(planted == static_cast<int>(m.model.parameters().size()) - 1);  // not the key bias
}

TEST_CASE("A tensor's gradient that is absent, doubled, negated or not a number is not accepted") {
  Small m;
  for (std::size_t i = 0; i < m.model.parameters().size(); ++i) {
    if (m.model.parameters().name(i).find("key_bias") != std::string::npos) continue;
    const Index size = m.model.parameters().value(i).size();
    for (const double factor : {0.0, 2.0, -1.0, std::nan("")}) {
      Matrix<double> wrong = m.gradients;
      wrong.middleCols(m.offset(i), size) *= factor;
      INFO(m.model.parameters().name(i) << " times " << factor);
      CHECK_FALSE(tensor_error(m.model, m.plan, m.batch, i, wrong).accepted());
    }
  }
}

TEST_CASE("A gradient of another shape is not accepted") {
  Matrix<double> x = normal_matrix(2, 3, "x");
  const auto error = gradient_error(
      "x", dense::view(x), x.transpose(), [] { return 0.0; }, 1);
  CHECK_FALSE(error.accepted());
}
