// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Dropout in whole models: the gradient of the loss that it makes, and when it acts.
// Sizes are pairwise distinct: B = 3, T = 5, S = 7, H = 4, K = 2, D = 6, C = 14, F = 17, V = 11.

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"
#include "support/small_shapes.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr double rate = 0.3;
constexpr std::uint64_t draw = 12;

Batch<double> batch_for(const Plan& plan) { return random_batch(plan.shape, 3, 5, 7); }

/// Compares the gradient of every tensor, and checks that it depends on the draw.
void check_gradient(const Plan& plan, Config config) {
  config.dropout = rate;
  Transformer<double> model(plan, config);
  prepare(model, plan);
  const Batch<double> batch = batch_for(plan);
  const double loss = model.loss_and_gradient(batch, draw);
  const Matrix<double> gradients = model.parameters().gradients();
  CHECK(model.loss(batch, draw) == loss);
  const GradientError worst = model_error(model, plan, batch, gradients, draw);
  INFO(plan.rule << ": " << worst);
  CHECK(worst.accepted());
  model.loss_and_gradient(batch, draw + 1);
  CHECK_FALSE(model_error(model, plan, batch, model.parameters().gradients(), draw).accepted());
  model.loss_and_gradient(batch, draw);
  CHECK(model.parameters().gradients() == gradients);
}

Plan small_plan() { return make_plan("standard", {.model = token_shape()}); }

}  // namespace

TEST_CASE("Gradients with dropout are right for a pre-norm decoder with embedding norm") {
  Shape s = token_shape();
  s.embedding_norm = true;
  s.tied_head = true;
  s.gated_mlp = true;
  s.residual_gain = ResidualGain::channel;
  check_gradient(make_plan("standard", {.model = s}),
                 {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("Gradients with dropout are right for a post-norm encoder with one gain per branch") {
  Shape s = token_shape();
  s.final_norm = false;
  s.segments = 2;
  s.residual_gain = ResidualGain::scalar;
  check_gradient(make_plan("bert", {.model = s}),
                 {.placement = NormPlacement::post, .causal = false});
}

TEST_CASE("Gradients with dropout are right for the normalized transformer") {
  Shape s = token_shape();
  s.kv_heads = 4;
  s.gated_mlp = true;
  Shape base = s;
  base.d_model = 4;
  check_gradient(make_plan("nu-gpt", {.model = s, .base = base}),
                 {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("Gradients with dropout are right for an encoder-decoder") {
  Shape s = token_shape();
  s.encoder_depth = 1;
  s.embedding_norm = true;
  check_gradient(make_plan("deep-norm", {.model = s}), {.placement = NormPlacement::post});
}

TEST_CASE("Gradients with dropout are right for a patch model") {
  Shape s = patch_shape();
  s.depth = 1;
  check_gradient(make_plan("standard", {.model = s}), {.causal = false});
}

TEST_CASE("A normalized block whose whole output is dropped leaves the loss finite") {
  Shape s = token_shape();
  s.heads = s.kv_heads = 1;  // the first token's attention is dropped in every second draw
  s.gated_mlp = true;
  const Plan plan = make_plan("ngpt", {.model = s});
  Transformer<double> model(plan, {.activation = Activation::silu, .dropout = 0.5});
  prepare(model, plan);
  const Batch<double> batch = batch_for(plan);
  for (std::uint64_t d = 0; d < 20; ++d) {
    CHECK(std::isfinite(model.loss_and_gradient(batch, d)));
    CHECK(model.parameters().gradients().allFinite());
  }
}

TEST_CASE("A loss without a draw knows no dropout") {
  const Plan plan = small_plan();
  const Batch<double> batch = batch_for(plan);
  Transformer<double> plain(plan, {});
  Transformer<double> model(plan, {.dropout = rate});
  prepare(plain, plan);
  prepare(model, plan);
  const double loss = plain.loss(batch);
  CHECK(plain.loss(batch, draw) == loss);
  CHECK(model.loss(batch) == loss);
  CHECK(model.loss(batch, draw) != loss);
  CHECK(model.loss(batch) == loss);
  model.loss_and_gradient(batch, draw);
  CHECK(model.loss(batch) == loss);
}

TEST_CASE("Seed and draw decide a loss with dropout, whatever ran before") {
  const Plan plan = small_plan();
  const Batch<double> batch = batch_for(plan);
  std::map<double, std::string> losses;
  for (const std::uint64_t seed : {0U, 1U}) {
    Transformer<double> model(plan, {.dropout = rate, .dropout_seed = seed});
    Transformer<double> again(plan, {.dropout = rate, .dropout_seed = seed});
    prepare(model, plan);
    prepare(again, plan);
    CHECK(model.loss_and_gradient(batch) == again.loss(batch, 0));
    for (const std::uint64_t at : {3U, 0U, 2U, 1U}) {
      const double loss = model.loss(batch, at);
      const std::string name = "seed " + std::to_string(seed) + ", draw " + std::to_string(at);
      INFO(name << " and " << losses[loss]);
      CHECK(losses[loss].empty());
      losses[loss] = name;
    }
    CHECK(losses.count(again.loss(batch, 2)) == 1);
  }
}

// Kept entries are scaled so that their mean is that without dropout: to first order in what is
// dropped, so is the mean of a function of them.
TEST_CASE("The mean over draws of what the first layer reads is that without dropout") {
  const Plan plan = small_plan();
  const Batch<double> batch = batch_for(plan);
  Transformer<double> model(plan, {.dropout = rate});
  prepare(model, plan);
  Matrix<double> embedding;
  model.observe([&](std::string_view name, Observed, const ConstView<double>& values) {
    if (name == "embedding") embedding = values;
  });
  model.loss(batch);
  const Matrix<double> expected = embedding;
  constexpr int draws = 4000;
  Matrix<double> sum = Matrix<double>::Zero(expected.rows(), expected.cols());
  for (int i = 0; i < draws; ++i) {
    model.loss(batch, static_cast<std::uint64_t>(i));
    sum += embedding;
  }
  const double deviation = std::sqrt(rate / (1 - rate) / draws);  // of a mean, relative
  const Matrix<double> error = sum / draws - expected;
  CHECK((error.array().abs() <= standard_errors * deviation * expected.array().abs()).all());
}

TEST_CASE("Each place of a model has a mask of its own, that of its name") {
  Shape s = token_shape();
  s.encoder_depth = 1;
  const Plan plan = make_plan("standard", {.model = s});
  const Batch<double> batch = batch_for(plan);
  Transformer<double> model(plan, {.dropout = rate, .dropout_seed = 5});
  prepare(model, plan);
  std::vector<std::string> dropped;
  model.observe([&](std::string_view name, Observed quantity, const ConstView<double>& values) {
    if (quantity == Observed::gradient) return;
    const auto zeros = static_cast<double>((values.array() == 0).count());
    if (zeros < 0.15 * static_cast<double>(values.size())) return;  // a sum: both were dropped
    if (name.ends_with("probabilities")) return;                    // zeros are of later tokens
    dropped.emplace_back(name);
    Matrix<double> mask = Matrix<double>::Ones(values.rows(), values.cols());
    Dropout(rate, 5, draw, name).apply(dense::view(mask));
    INFO(name);
    CHECK(((values.array() == 0) == (mask.array() == 0)).all());
  });
  model.loss(batch, draw);
  const std::vector<std::string> expected = {
      "encoder.embedding",    "encoder.0.attention.output", "encoder.0.mlp.output",
      "decoder.embedding",    "decoder.0.attention.output", "decoder.0.cross_attention.output",
      "decoder.0.mlp.output", "decoder.1.attention.output", "decoder.1.cross_attention.output",
      "decoder.1.mlp.output"};
  CHECK(dropped == expected);
}
