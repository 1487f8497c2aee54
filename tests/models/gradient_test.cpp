// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every gradient of whole models against central differences, along random directions.
// Sizes are pairwise distinct: B = 3, T = 5, S = 7, H = 4, K = 2, D = 6, C = 14, F = 17, V = 11.

#include <string>
#include <utility>

#include "scalewise/nn/train_step.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"
#include "support/small_shapes.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

/// Another width, head, depth and d_ff, so that no ratio to it is 1.
Shape base_of(Shape s) {
  s.d_model = 4;
  s.head_dim = 2;
  s.d_ff = 6;
  s.depth = 1;
  s.encoder_depth = s.encoder_depth > 0 ? 1 : 0;
  return s;
}

/// Checks that three steps block by block, with all gradients in memory and with those of one block, give the bits
/// of three plain steps.
void check_block_by_block(Plan plan, const Config& config, const Batch<double>& batch) {
  for (const Optimizer& one : policy::known_optimizers) {
    if (one.normalization == policy::Normalization::by_matrix) continue;  // plans of its own
    plan.optimizer = one;
    INFO(plan.rule << ", " << one.name);
    const auto train = [&](Gradients kept, bool by_block) {
      Transformer<double> model(plan, config, kept);
      prepare(model, plan);
      PlannedOptimizer<double> optimizer(plan,
                                         {.rate = 0.01, .weight_decay = 0.1, .momentum = 0.9});
      Matrix<double> result = model.parameters().values();
      double losses = 0;
      for (int step = 0; step < 3; ++step) {
        if (by_block) {
          losses += train_step(model, optimizer, batch, 0, 0.5);
        } else {
          losses += model.loss_and_gradient(batch);
          optimizer.step(model.parameters(), 0.5);
        }
        normalize_matrices(model.parameters(), plan);
      }
      CHECK(model.parameters().values() != result);
      CHECK(optimizer.state().steps == 3);
      result = model.parameters().values();
      return std::pair{losses, result};
    };
    const auto plain = train(Gradients::all, false);
    CHECK(train(Gradients::all, true) == plain);
    CHECK(train(Gradients::block_by_block, true) == plain);
  }
}

/// Checks that a gradient is of the last loss, whatever became of its batch, and that there is none without one.
void check_one_gradient_for_each_loss(Transformer<double>& model, Batch<double> batch,
                                      const Matrix<double>& gradients) {
  model.loss(batch);
  Batch<double> other = std::exchange(batch, {});
  model.backward();
  CHECK(model.parameters().gradients() == gradients);
  CHECK_THROWS_AS(model.backward(), InvalidInput);
  model.loss(other);
  other.targets.pop_back();
  CHECK_THROWS_AS(model.loss(other), InvalidInput);
  CHECK_THROWS_AS(model.backward(), InvalidInput);
}

/// Checks every tensor. Those that the model does not read have no gradient to check: only the bias
/// of keys or of their norm may be one, since softmax does not see what all scores of a query share.
void check_every_gradient(const Plan& plan, const Config& config) {
  Transformer<double> model(plan, config);
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  model.loss_and_gradient(batch);
  const Matrix<double> gradients = model.parameters().gradients();
  for (const std::string& name : idle_tensors(model)) {
    INFO(name);
    const bool of_keys = name.find("key_bias") != std::string::npos ||
                         name.find("key_norm_bias") != std::string::npos;
    CHECK(of_keys);
    CHECK_FALSE((config.rotary && name.find("cross") == std::string::npos));
  }
  const GradientError worst = model_error(model, plan, batch, gradients);
  INFO(plan.rule << ": " << worst);
  CHECK(worst.accepted());
  model.loss_and_gradient(batch);
  CHECK(model.parameters().gradients() == gradients);  // overwritten, not added to
  check_one_gradient_for_each_loss(model, batch, gradients);
  check_block_by_block(plan, config, batch);
}

}  // namespace

TEST_CASE("A gradient with one wrong entry is refused, whichever it is") {
  const Plan plan = make_plan("standard", {.model = token_shape()});
  Transformer<double> model(plan, {});
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  model.loss_and_gradient(batch);
  const Matrix<double> gradients = model.parameters().gradients();
  CHECK(model_error(model, plan, batch, gradients).accepted());
  for (Index at = 0; at < gradients.size(); at += 101) {
    INFO("entry " << at);
    Matrix<double> wrong = gradients;
    wrong.data()[at] += 1e-4 * largest(gradients);
    CHECK_FALSE(model_error(model, plan, batch, wrong).accepted());
  }
}

TEST_CASE("Gradients are right for a pre-norm decoder with a tied head") {
  Shape s = token_shape();
  s.tied_head = true;
  const Plan plan =
      make_plan("maximal-update", {.model = s, .base = base_of(s), .parameters = {{"table", 3}}});
  REQUIRE(plan.model.logit_multiplier.value != 1);
  check_every_gradient(plan, {});
  check_every_gradient(scrambled(plan), {});
}

TEST_CASE("Gradients are right for a gated, rotary decoder without biases") {
  Shape s = token_shape();
  s.gated_mlp = true;
  s.biases = false;
  s.norm_bias = false;
  s.learned_positions = false;
  const Config config{.norm = Norm::rms, .activation = Activation::silu, .rotary = true};
  const Plan plan =
      make_plan("maximal-update",
                {.model = s, .base = base_of(s), .optimizer = sgd, .parameters = {{"table", 9}}});
  REQUIRE(plan.at("layer.0.mlp_norm_gain").multiplier.value != 1);
  REQUIRE(plan.at("token_embedding").multiplier.value != 1);
  check_every_gradient(plan, config);
  s.biases = true;
  check_every_gradient(
      scrambled(make_plan(
          "maximal-update",
          {.model = s, .base = base_of(s), .optimizer = sgd, .parameters = {{"table", 9}}})),
      config);
}

TEST_CASE("Gradients are right for a decoder without norm gains, positions or tied head") {
  Shape s = token_shape();
  s.norm_gain = false;
  s.learned_positions = false;
  s.kv_heads = 1;
  s.head_bias = true;
  const Plan plan =
      make_plan("maximal-update",
                {.model = s, .base = base_of(s), .optimizer = sgd, .parameters = {{"table", 8}}});
  REQUIRE(plan.at("head").multiplier.value != 1);
  check_every_gradient(plan, {.activation = Activation::relu});
  check_every_gradient(scrambled(plan), {.norm = Norm::rms, .activation = Activation::relu});
}

TEST_CASE("Gradients are right for parallel branches with capped scores and logits") {
  const Config config{.parallel = true, .score_cap = 0.7, .logit_cap = 1.3};
  const Plan plan =
      make_plan("complete-p", {.model = token_shape(), .base = base_of(token_shape())});
  REQUIRE(plan.model.residuals[0].branch.value != 1);
  check_every_gradient(plan, config);
  check_every_gradient(scrambled(plan), config);
}

TEST_CASE("Gradients are right for experts, whatever weighs their outputs") {
  Shape s = token_shape();
  s.experts = 5;
  s.experts_per_token = 2;
  s.expert_ff = 9;
  for (const Gates gates : {Gates::softmax, Gates::renormalized, Gates::sigmoid}) {
    INFO(word(gates_words, gates));
    check_every_gradient(scrambled(make_plan("standard", {.model = s})),
                         {.activation = Activation::silu, .gates = gates});
    s.gated_mlp = true;  // of the last two
  }
  s.experts_per_token = 5;
  s.residual_gain = ResidualGain::channel;
  check_every_gradient(scrambled(make_plan("standard", {.model = s})),
                       {.placement = NormPlacement::post, .gates = Gates::sigmoid});
}

TEST_CASE("Biases of experts bring their loads together, and weigh nothing") {
  Shape s = token_shape();
  s.experts = 4;
  s.experts_per_token = 1;
  const Plan plan = make_plan("standard", {.model = s});
  Transformer<double> model(plan, {.gates = Gates::sigmoid});
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 16, 8, 0);
  const double before = model.loss(batch);
  const double skewed = model.balance_experts(0);
  CHECK(model.loss(batch) == before);
  double largest = 0;
  for (int step = 0; step < 200; ++step) {
    model.loss(batch);
    largest = model.balance_experts(0.005);
  }
  CHECK(skewed > 1.5);
  CHECK(largest < 1.2);
  Batch<double> one = batch;  // the gradient is that of the scores, wherever the biases are
  model.loss_and_gradient(one);
  const Matrix<double> gradients = model.parameters().gradients();
  const GradientError worst = model_error(model, plan, one, gradients);
  INFO(worst);
  CHECK(worst.accepted());
  const Plan dense = make_plan("standard", {.model = token_shape()});
  Transformer<double> without(dense, {});
  CHECK_THROWS_AS(without.balance_experts(0.001), InvalidInput);
}

TEST_CASE("Gradients are right for norms of queries, keys and branches") {
  Shape s = token_shape();
  s.branch_norm = true;
  s.biases = false;
  s.attention_biases = AttentionBiases::qkv;
  s.qk_norm = QkNorm::head;
  const Config rotary{.norm = Norm::rms, .rotary = true, .score_cap = 2};
  check_every_gradient(scrambled(make_plan("standard", {.model = s})), rotary);
  s.qk_norm = QkNorm::full;
  s.residual_gain = ResidualGain::channel;
  check_every_gradient(scrambled(make_plan("standard", {.model = s})), {.parallel = true});
  s.encoder_depth = 1;
  s.norm_gain = false;
  check_every_gradient(scrambled(make_plan("standard", {.model = s})),
                       {.placement = NormPlacement::post});
}

TEST_CASE("Gradients are right for a post-norm encoder with embedding norm and segments") {
  Shape s = token_shape();
  s.segments = 2;
  s.embedding_norm = true;
  s.final_norm = false;
  s.tied_head = true;
  s.head_bias = true;
  const Config config{.placement = NormPlacement::post, .causal = false};
  Plan plan = make_plan("deep-norm", {.model = s});
  REQUIRE(plan.model.residuals[0].skip.value != 1);
  // Only the first segment is read.
  Transformer<double> model(plan, config);
  prepare(model, plan);
  model.loss_and_gradient(random_batch(plan.shape, 3, 5, 7));
  const auto at = static_cast<std::size_t>(model.parameters().find("segment_embedding"));
  CHECK(model.parameters().gradient(at).row(0).cwiseAbs().maxCoeff() > 1e-6);
  CHECK(model.parameters().gradient(at).row(1).cwiseAbs().maxCoeff() == 0);
  check_every_gradient(plan, config);
  check_every_gradient(scrambled(plan), config);
}

TEST_CASE("Gradients are right for a post-norm decoder with heads as wide as the model") {
  Shape s = token_shape();
  s.d_model = 12;
  s.kv_heads = 4;
  s.head_dim = 3;
  s.gated_mlp = true;
  s.final_norm = false;
  const Plan plan = make_plan("xavier", {.model = s, .optimizer = sgd});
  REQUIRE(plan.model.embedding_multiplier.value != 1);
  check_every_gradient(
      plan, {.placement = NormPlacement::post, .norm = Norm::rms, .activation = Activation::relu});
}

TEST_CASE("Gradients are right for the normalized transformer") {
  Shape s = token_shape();
  s.kv_heads = 4;
  const Config config{.activation = Activation::silu, .rotary = true};
  const Plan plan = make_plan("nu-gpt", {.model = s, .base = base_of(s)});
  REQUIRE(plan.at("layer.1.mlp_step").multiplier.value != 1);
  REQUIRE(plan.at("layer.1.qk_scale").multiplier.value != 1);
  REQUIRE(plan.at("logit_scale").multiplier.value != 1);
  check_every_gradient(plan, config);
  s.activation = Activation::gelu;
  const Plan other = make_plan("nu-gpt", {.model = s, .base = base_of(s)});
  check_every_gradient(scrambled(other), {.activation = Activation::gelu, .causal = false});
}

TEST_CASE("Steps of the normalized transformer act by their absolute value") {
  Shape s = token_shape();
  s.kv_heads = 4;
  const Plan plan = make_plan("nu-gpt", {.model = s, .base = base_of(s)});
  Transformer<double> model(plan, {.activation = Activation::silu, .rotary = true});
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  const double loss = model.loss_and_gradient(batch);
  for (const char* name : {"layer.0.attention_step", "layer.1.mlp_step"}) {
    INFO(name);
    const auto at = static_cast<std::size_t>(model.parameters().find(name));
    const Matrix<double> step = model.parameters().value(at);
    const Matrix<double> gradient = model.parameters().gradient(at);
    CHECK(step.minCoeff() < 0);  // both signs are met
    CHECK(step.maxCoeff() > 0);
    model.parameters().value(at) = -step;
    CHECK(model.loss_and_gradient(batch) == loss);
    CHECK(model.parameters().gradient(at) == -gradient);

    model.parameters().value(at)(0, 3) = 0;  // the kink: PyTorch's abs has the slope 0 there
    model.loss_and_gradient(batch);
    CHECK(model.parameters().gradient(at)(0, 3) == 0);
    model.parameters().value(at) = step;
    model.loss_and_gradient(batch);
  }
}

TEST_CASE("Gradients are right for a pre-norm encoder-decoder") {
  Shape s = token_shape();
  s.encoder_depth = 2;
  s.embedding_norm = true;
  s.segments = 1;
  const Plan plan = make_plan("complete-p", {.model = s, .base = base_of(s)});
  REQUIRE(plan.model.residuals[0].branch.value != 1);
  REQUIRE(plan.model.attention_scale.value != 1);
  check_every_gradient(plan, {});
  s.residual_gain = ResidualGain::channel;
  s.tied_head = true;
  check_every_gradient(scrambled(make_plan("depth-mup", {.model = s, .base = base_of(s)})),
                       {.rotary = true});
}

TEST_CASE("Gradients are right for a post-norm encoder-decoder with rotary positions") {
  Shape s = token_shape();
  s.encoder_depth = 3;
  s.depth = 1;
  s.final_norm = false;
  s.learned_positions = false;
  const Config config{.placement = NormPlacement::post, .rotary = true};
  const Plan plan = make_plan("deep-norm", {.model = s});
  REQUIRE(plan.model.residuals.front().skip.value != plan.model.residuals.back().skip.value);
  check_every_gradient(plan, config);
}

TEST_CASE("Gradients are right for a patch model with a gain per channel") {
  const Plan plan = make_plan("layer-scale", {.model = patch_shape()});
  REQUIRE(plan.at("layer.1.mlp_gain").rows == 14);
  const Config config{.activation = Activation::relu, .causal = false};
  check_every_gradient(plan, config);
  check_every_gradient(scrambled(plan), config);
}

TEST_CASE("Gradients are right for a patch model with one gain per branch and no biases") {
  Shape s = patch_shape();
  s.biases = false;
  s.learned_positions = false;
  s.head_bias = false;
  const Plan plan = make_plan("rezero", {.model = s, .optimizer = sgd});
  REQUIRE(plan.at("layer.1.mlp_gain").rows == 1);
  check_every_gradient(plan, {.norm = Norm::rms, .causal = false});
  check_every_gradient(scrambled(plan),
                       {.placement = NormPlacement::post, .activation = Activation::silu});
}

TEST_CASE("Gradients are right for a patch model with a class token") {
  Shape s = patch_shape();
  s.class_token = true;
  const Plan plan = make_plan("neural-tangent", {.model = s});
  REQUIRE(plan.at("class_token").rows == s.d_model);
  check_every_gradient(plan, {.causal = false});
  s.biases = false;
  check_every_gradient(scrambled(make_plan("layer-scale", {.model = s})), {.causal = false});
}

TEST_CASE("Gradients are right for weighted residual connections at depth three") {
  Shape s = token_shape();
  s.depth = 3;
  const Plan plan = make_plan(test::told("deep-scale-lm"), {.model = s, .optimizer = sgd});
  REQUIRE(plan.model.residuals[0].skip.value != 1);
  REQUIRE(plan.model.residuals[0].branch.value != 1);
  REQUIRE(plan.model.logit_multiplier.value != 1);
  check_every_gradient(plan, {.activation = Activation::relu, .causal = false});
}

TEST_CASE("Gradients are right for a rule that ties its head with a multiplier") {
  Shape s = token_shape();
  s.norm_gain = false;
  s.norm_bias = false;
  const Plan plan = make_plan("meta-principled", {.model = s});
  REQUIRE(*plan.shape.tied_head);
  REQUIRE(plan.model.logit_multiplier.value != 1);
  check_every_gradient(plan, {.norm = Norm::rms, .activation = Activation::silu});
}

TEST_CASE("Gradients are right for a regression, whose loss is half the mean squared error") {
  const Plan plan = make_plan("standard", {.model = patch_shape()});
  Transformer<double> model(plan, {.causal = false});
  prepare(model, plan);
  Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  batch.values = normal_matrix(3, plan.shape.classes, "values");
  const double loss = model.loss_and_gradient(batch);
  const Matrix<double> gradients = model.parameters().gradients();
  double sum = 0;
  for (Index i = 0; i < batch.values.rows(); ++i) {
    for (Index c = 0; c < batch.values.cols(); ++c) {
      sum += std::pow(model.logits()(i, c) - batch.values(i, c), 2);
    }
  }
  CHECK(std::abs(loss - sum / 2 / double(batch.values.size())) <= 1e-14 * loss);
  const GradientError worst = model_error(model, plan, batch, gradients);
  INFO(worst);
  CHECK(worst.accepted());
  batch.values.resize(3, plan.shape.classes - 1);
  CHECK_THROWS_AS(model.loss(batch), InvalidInput);
}

TEST_CASE("Steps block by block leave tensors alone that the model does not read") {
  const Plan plan = make_plan("standard", {.model = token_shape()});
  Config config;
  config.norm = Norm::none;
  check_block_by_block(plan, config, random_batch(plan.shape, 3, 5, 7));
}

TEST_CASE(
    "Gradients block by block take the memory of one block, and only a step can do with them") {
  Shape s = token_shape();
  const Plan plan = make_plan("standard", {.model = s});
  Transformer<double> model(plan, {}, Gradients::block_by_block);
  prepare(model, plan);
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  CHECK_THROWS_AS(model.loss_and_gradient(batch), InvalidInput);
  CHECK_THROWS_AS(model.parameters().gradients(), InvalidInput);
  PlannedOptimizer<double> optimizer(plan, {});
  CHECK_THROWS_AS(optimizer.step(model.parameters()), InvalidInput);
  const auto at = [&](const std::string& name) {
    return model.parameters()
        .gradient(static_cast<std::size_t>(model.parameters().find(name)))
        .data();
  };
  CHECK(at("layer.0.mlp_up") == at("layer.1.mlp_up"));
  CHECK(at("layer.0.mlp_up") == at("layer.0.mlp_down"));
  CHECK(at("layer.0.query") != at("layer.0.key"));
  CHECK(at("layer.0.mlp_norm_gain") != at("layer.1.attention_norm_gain"));
  CHECK(at("final_norm_gain") != at("layer.0.attention_norm_gain"));

  PlannedOptimizer<double> clipping(plan, {.clip_norm = 1});
  const Matrix<double> before = model.parameters().values();
  CHECK_THROWS_AS(train_step(model, clipping, batch), InvalidInput);
  CHECK(model.parameters().values() == before);
  CHECK(clipping.state().steps == 0);
}
