// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The usual initializations and the one-layer theory against numbers computed here.

#include <cmath>

#include "scalewise/policy/all.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("baseline numbers") {
  Shape shape = decoder();
  const double bound = 1 / std::sqrt(96.0);
  const Plan pytorch = make_plan<PyTorch, sgd>(shape);
  check_variance(pytorch, "layer.2.mlp_up", bound * bound / 3);
  check_variance(pytorch, "layer.2.mlp_up_bias", bound * bound / 3);
  check_variance(pytorch, "layer.2.mlp_down_bias", 1 / (3 * 200.0));
  check_variance(pytorch, "layer.2.attention_output", 1 / (3 * 144.0));
  check_variance(pytorch, "token_embedding", 1);

  Plan gpt2 = make_plan<Gpt2, adamw>(shape);
  const double residual = 0.02 / std::sqrt(10.0);
  check_variance(gpt2, "layer.2.attention_output", residual * residual);
  check_variance(gpt2, "layer.2.mlp_down", residual * residual);
  check_variance(gpt2, "layer.2.mlp_up", 0.0004);
  check_variance(gpt2, "token_embedding", 0.0004);
  CHECK(near(gpt2.model.attention_scale.value, 1 / std::sqrt(24.0)));
  CHECK(gpt2.at("layer.2.mlp_up_bias").weight_decay.value == 0);

  check_variance(make_plan<Bert, adamw>(shape), "layer.2.attention_output", 0.0004);
  check_variance(make_plan<Standard, adamw>(shape), "layer.2.attention_output", 1 / 144.0);
  check_variance(make_plan<He, adamw>(shape), "layer.2.mlp_down", 2 / 200.0);

  const Plan xavier = make_plan<Xavier, adamw>(shape);
  check_variance(xavier, "layer.2.key", 2.0 / (96 + 48));
  check(xavier, "token_embedding", {.variance = 1 / 96.0, .multiplier = std::sqrt(96.0)});
  CHECK(near(xavier.model.embedding_multiplier.value, std::sqrt(96.0)));
  CHECK(xavier.model.logit_multiplier.value == 1);

  shape.tied_head = true;
  CHECK(near(make_plan<Standard, adamw>(shape).model.logit_multiplier.value, bound));
  CHECK(make_plan<Gpt2, adamw>(shape).model.logit_multiplier.value == 1);
}

TEST_CASE("the layers of a stack are its own") {
  // GPT-2 divides the variance of what adds to the stream by twice the layers: 6 and 4 of them.
  const Plan plan = make_plan<Gpt2, adamw>(encoder_decoder());
  check_variance(plan, "encoder.0.attention_output", 0.0004 / 12);
  check_variance(plan, "encoder.5.mlp_down", 0.0004 / 12);
  check_variance(plan, "decoder.0.cross_attention_output", 0.0004 / 8);
  check_variance(plan, "decoder.3.mlp_down", 0.0004 / 8);
}

TEST_CASE("shallow encoder numbers") {
  const Shape shape = vision();
  const double w = 192;
  const auto row = [&](const Plan& plan, double o, double qkv, double tau1, double tau0) {
    check_variance(plan, "layer.0.query", qkv);
    check_variance(plan, "layer.0.key", qkv);
    check_variance(plan, "layer.0.value", qkv);
    check(plan, "head", {.variance = o, .multiplier = tau1});
    CHECK(near(plan.model.attention_scale.value, tau0));
    CHECK(near(plan.model.logit_multiplier.value, tau1));
  };
  const double root = 1 / std::sqrt(w);
  row(make_plan<ShallowLeCun, sgd>(shape), 1 / w, 1 / 48.0, 1, root);
  row(make_plan<ShallowHe, sgd>(shape), 2 / w, 2 / 48.0, 1, root);
  row(make_plan<ShallowNtk, sgd>(shape), 1, 1, root, root);
  row(make_plan<ShallowNtk, sgd>(shape, {}, {.tau0 = 1}), 1, 1, root, 1 / w);
  CHECK_THROWS_AS((make_plan<ShallowNtk, sgd>(shape, {}, {.tau0 = 0.7})), InvalidInput);
}
