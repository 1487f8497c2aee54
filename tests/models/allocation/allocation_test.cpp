// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// After the first step of a size, training takes nothing from the heap. The sizes are so small that
// Eigen packs the operands of its products on the stack, which it does up to 128 KiB.

#include <string>

#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/allocations.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

Shape token_shape() {
  Shape s{.d_model = 28, .depth = 2, .heads = 4, .kv_heads = 2, .head_dim = 6, .d_ff = 34};
  s.context = 8;
  s.vocab = 21;
  return s;
}

/// Allocations of a loss, a gradient and a step.
long allocations(Transformer<double>& model, const Plan& plan, PlannedOptimizer<double>& optimizer,
                 const Batch<double>& batch, std::uint64_t draw) {
  const long before = benchmark::allocation_count();
  model.loss(batch);
  model.loss_and_gradient(batch, draw);
  optimizer.step(model.parameters(), 0.5);
  normalize_matrices(model.parameters(), plan);
  return benchmark::allocation_count() - before;
}

/// Checks that only the first step takes memory, with every update rule, and that a smaller batch
/// finds all that it needs.
void check(Plan plan, Config config) {
  REQUIRE(std::string(benchmark::counted_allocations()) != "nothing");
  const Batch<double> batch = random_batch(plan.shape, 3, 5, 7);
  const Batch<double> smaller = random_batch(plan.shape, 2, 4, 3);
  for (const double dropout : {0.0, 0.3}) {
    config.dropout = dropout;
    Transformer<double> model(plan, config);
    initialize(model.parameters(), plan, 7, BaseDeviation::uniform(0.1));
    for (const Optimizer& one : policy::known_optimizers) {
      plan.optimizer = one;
      PlannedOptimizer<double> optimizer(plan,
                                         {.weight_decay = 0.1, .momentum = 0.9, .clip_norm = 0.1});
      const long first = allocations(model, plan, optimizer, batch, 0);
      if (one == adamw) CHECK(first > 0);
      INFO(plan.rule << ", dropout " << dropout << ", " << one.name);
      for (const std::uint64_t draw : {1U, 2U}) {
        CHECK(allocations(model, plan, optimizer, batch, draw) == 0);
        CHECK(allocations(model, plan, optimizer, smaller, draw) == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE("A later step of a pre-norm decoder takes nothing from the heap") {
  Shape s = token_shape();
  s.tied_head = true;
  s.head_bias = true;
  s.embedding_norm = true;
  s.segments = 2;
  check(make_plan("standard", {.model = s}), {});
}

TEST_CASE("A later step of a gated, rotary decoder takes nothing from the heap") {
  Shape s = token_shape();
  s.gated_mlp = true;
  s.norm_bias = false;
  s.residual_gain = ResidualGain::channel;
  check(make_plan("standard", {.model = s}),
        {.norm = Norm::rms, .activation = Activation::silu, .rotary = true});
}

TEST_CASE("A later step of a post-norm encoder-decoder takes nothing from the heap") {
  Shape s = token_shape();
  s.encoder_depth = 1;
  check(make_plan("deep-norm", {.model = s}), {.placement = NormPlacement::post});
}

TEST_CASE("A later step of a normalized transformer takes nothing from the heap") {
  Shape s = token_shape();
  s.kv_heads = 4;
  s.gated_mlp = true;
  check(make_plan("nu-gpt", {.model = s, .base = s}),
        {.activation = Activation::silu, .rotary = true});
}

TEST_CASE("A later step of a patch model with scalar gains takes nothing from the heap") {
  Shape s = token_shape();
  s.input = Input::patch;
  s.patch_dim = 10;
  s.classes = 9;
  check(make_plan("rezero", {.model = s}), {.activation = Activation::relu, .causal = false});
}
