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
  Shape s{.d_model = d_model, .depth = depth, .heads = 6, .kv_heads = 3, .head_dim = 10};
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
