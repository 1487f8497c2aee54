// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/gpt2.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

// N(0, 0.02²); residual outputs 0.02/sqrt(2L); biases 0; no decay of gains and biases.
static_assert(drawn<Gpt2>({Group::query, Group::key, Group::value, Group::mlp_up, Group::mlp_gate},
                          0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::attention_output}, 0.02 * 0.02 / (2 * L)));
static_assert(drawn<Gpt2>({Group::mlp_down}, 0.02 * 0.02 / (2 * L)));
static_assert(drawn<Gpt2>({Group::token_embedding}, 0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::position_embedding}, 0.02 * 0.02));
static_assert(drawn<Gpt2>({Group::head}, 0.02 * 0.02));
static_assert(starts_at<Gpt2>(norm_gains, 1, 0));
static_assert(starts_at<Gpt2>(norm_biases, 0, 0));
static_assert(starts_at<Gpt2>(linear_biases, 0, 0));
static_assert(plain_model(Gpt2{}.model(), 1));

TEST_CASE("GPT-2 numbers") {
  Shape shape = decoder();
  const Plan plan = make_plan(Gpt2{}, {.model = shape});
  const double residual = 0.02 / std::sqrt(10.0);
  check_variance(plan, "layer.2.attention_output", residual * residual);
  check_variance(plan, "layer.2.mlp_down", residual * residual);
  check_variance(plan, "layer.2.mlp_up", 0.0004);
  check_variance(plan, "token_embedding", 0.0004);
  CHECK(near(plan.model.attention_scale.value, 1 / std::sqrt(24.0)));
  CHECK(plan.at("layer.2.mlp_up_bias").weight_decay.value == 0);
  shape.tied_head = true;
  CHECK(make_plan(Gpt2{}, {.model = shape}).model.logit_multiplier.value == 1);
}

TEST_CASE("the layers of a stack are its own") {
  // GPT-2 divides the variance of what adds to the stream by twice the layers: 6 and 4 of them.
  const Plan plan = make_plan(Gpt2{}, {.model = encoder_decoder()});
  check_variance(plan, "encoder.0.attention_output", 0.0004 / 12);
  check_variance(plan, "encoder.5.mlp_down", 0.0004 / 12);
  check_variance(plan, "decoder.0.cross_attention_output", 0.0004 / 8);
  check_variance(plan, "decoder.3.mlp_down", 0.0004 / 8);
}
