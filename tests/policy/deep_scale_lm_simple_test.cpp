// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/deep_scale_lm_simple.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

static_assert(dslm_rows(DeepScaleLMSimple{}));
static_assert(drawn(fans(DeepScaleLMSimple{}, Group::value), sqrt(keep / 2) / n));
static_assert(drawn(fans(DeepScaleLMSimple{}, Group::attention_output), sqrt(keep / 2) / n));
static_assert(dslm_model(DeepScaleLMSimple{}.model(), sqrt(2 / L)));

TEST_CASE("DeepScaleLM's simple form differs in value and attention output alone") {
  Shape shape = three_tables;
  const double p = GENERATE(0.0, 0.1, 0.3);
  const double k = GENERATE(2.0, 1.5);
  const double a = GENERATE(1.0, 1.25);
  CAPTURE(p, k, a);
  const DeepScaleLM full{
      .dropout = p, .input_correlation = 0.25, .embedding_tables = 3, .k = k, .a = a};
  const Plan plan = make_plan(full, {.model = shape});
  shape.tied_head = true;
  const Plan simple = make_plan(DeepScaleLMSimple{.full = full}, {.model = shape});
  for (const Group g : {Group::value, Group::attention_output}) {
    for (const Entry* entry : simple.of(g)) {
      CHECK(near(entry->init_variance.value, std::sqrt((1 - p) / 2) / 256));
    }
  }
  CHECK(simple.model.residuals == plan.model.residuals);
}
