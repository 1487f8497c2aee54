// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/nn/config.hpp"

#include <cmath>

#include "scalewise/policy/rule.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/small_shapes.hpp"

using namespace scalewise;

TEST_CASE("The configuration of a text has what the text says, and else the usual") {
  const nn::Config normalized = nn::config_of(NuGpt::text);
  CHECK(normalized.activation == Activation::silu);
  CHECK(normalized.rotary);
  CHECK(normalized.placement == NormPlacement::pre);
  CHECK(nn::config_of(Rule("deep-norm").text).placement == NormPlacement::post);
  const nn::Config usual = nn::config_of(Rule("standard").text);
  CHECK(usual.activation == nn::Config{}.activation);
  CHECK(usual.rotary == nn::Config{}.rotary);
}

TEST_CASE("What a configuration has otherwise than a text is named, and nothing else") {
  CHECK(nn::differences(nn::config_of(NuGpt::text), NuGpt::text).empty());
  CHECK(nn::differences({}, NuGpt::text) ==
        "activation = gelu (silu there), positions = learned (rotary there)");
  CHECK(nn::differences({}, {.rotary = false, .placement = NormPlacement::post}) ==
        "placement = pre (post there)");
  CHECK(nn::differences({.rotary = true}, {}).empty());
}

TEST_CASE("Caps that are not numbers, and parallel branches where there are none, are refused") {
  const auto refusal = [](const nn::Config& config, Shape shape = test::token_shape()) {
    return test::error_message([&] { nn::check(config, resolved(shape)); });
  };
  CHECK(refusal({.score_cap = -1}) == "score_cap = -1: expected a positive number, or 0 for none");
  CHECK(refusal({.logit_cap = NAN}).starts_with("logit_cap = nan: expected"));
  CHECK(refusal({.placement = NormPlacement::post, .parallel = true})
            .starts_with("parallel = true: expected false with norms after the branches"));
  Shape two = test::token_shape();
  two.encoder_depth = 1;
  CHECK(refusal({.parallel = true}, two).starts_with("parallel = true"));
  CHECK_NOTHROW(nn::check({.parallel = true, .score_cap = 50, .logit_cap = 30},
                          resolved(test::token_shape())));
}

TEST_CASE("A class token that would see no patch is refused") {
  Shape shape = test::patch_shape();
  shape.class_token = true;
  const auto refusal = [&](bool causal) {
    return test::error_message([&] { nn::check({.causal = causal}, resolved(shape)); });
  };
  CHECK(refusal(true) == "causal = true: expected false where a class token comes first");
  CHECK(refusal(false) == "no error");
}

TEST_CASE("A single expert whose weight is 1, whatever its router says, is refused") {
  const auto refusal = [](long experts, long active, nn::Gates gates) {
    Shape shape = test::token_shape();
    shape.experts = experts;
    shape.experts_per_token = active;
    return test::error_message([&] { nn::check({.gates = gates}, resolved(shape)); });
  };
  CHECK(
      refusal(4, 1, nn::Gates::renormalized).starts_with("gates = renormalized: expected sigmoid"));
  CHECK(refusal(1, 1, nn::Gates::softmax).starts_with("gates = softmax"));
  CHECK(refusal(4, 1, nn::Gates::softmax) == "no error");
  CHECK(refusal(1, 1, nn::Gates::sigmoid) == "no error");
  CHECK(refusal(4, 2, nn::Gates::renormalized) == "no error");
}
