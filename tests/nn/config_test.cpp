// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/nn/config.hpp"

#include "scalewise/policy/rule.hpp"
#include "support/catch.hpp"

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
