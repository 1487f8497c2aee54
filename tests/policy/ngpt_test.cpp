// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/ngpt.hpp"

#include "support/catch.hpp"
#include "support/normalized_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

static_assert(has_column(NGpt{}, {1, 1, 1, 1, 0.05, 1 / sqrt(n), 1}));
static_assert(has_column(NGpt{.input_rate = 2, .output_rate = 0.5},
                         {1, 2, 1, 0.5, 0.05, 1 / sqrt(n), 1}));
static_assert(unit_model(NGpt{}.model()));
// A rule of its own numbers; the others need the base.
static_assert(!NGpt{}.row(Group::query).rate(adamw).scaling.needs_base());
static_assert(!policy::states(NGpt{}, sgd) && policy::states(NGpt{}, adamw));

TEST_CASE("A normalized model has the SiLU of the text unless it is given another activation") {
  CHECK(make_plan(NGpt{}, {.model = decoder()}).shape.activation == Activation::silu);
  Shape other = decoder();
  other.activation = Activation::gelu;
  CHECK(make_plan(NGpt{}, {.model = other}).shape.activation == Activation::gelu);
  CHECK(Rule("nu-gpt").text.rotary == true);
  CHECK_FALSE(Rule("standard").text.rotary.has_value());
}
