// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/deep_scale_lm.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

constexpr Scaling r_l{DeepScaleLM::token_correlation};
static_assert(dslm_rows(DeepScaleLM{}));
static_assert(drawn(fans(DeepScaleLM{}, Group::value), sqrt(keep / r_l) / symbols::n));
static_assert(drawn(fans(DeepScaleLM{}, Group::attention_output), sqrt(keep / r_l) / symbols::n));

// At F = 4n the MLP variance is the paper's (1/n) sqrt((1-p)/2).
static_assert(substitute(dslm_mlp, symbols::d_ff, 4 * symbols::n) == sqrt(keep / 2) / symbols::n);

// (1-p) over the number of embedding tables: as told, or as many as the shape has.
constexpr bool dslm_tables(const DeepScaleLM& p, bool positions, long segments,
                           const Scaling& variance) {
  const policy::Context context{.shape = {.segments = segments, .learned_positions = positions}};
  return drawn(fans(p, Group::token_embedding, context), variance) &&
         drawn(fans(p, Group::position_embedding, context), variance) &&
         drawn(fans(p, Group::segment_embedding, context), variance);
}
static_assert(dslm_tables({.embedding_tables = 3}, true, 0, keep / 3));
static_assert(dslm_tables({.embedding_tables = 1}, true, 2, keep));
static_assert(dslm_tables({}, false, 0, keep));
static_assert(dslm_tables({}, true, 0, keep / 2));
static_assert(dslm_tables({}, false, 2, keep / 2));
static_assert(dslm_tables({}, true, 2, keep / 3));

static_assert(dslm_model(DeepScaleLM{}.model(), sqrt(2 / symbols::L)));
static_assert(dslm_model(DeepScaleLM{.k = 3, .a = 1.5}.model(), sqrt(3 / pow(symbols::L, {3, 2}))));
static_assert(DeepScaleLM{}.k == 2 && DeepScaleLM{}.a == 1);

}  // namespace

TEST_CASE("DeepScaleLM says what the letters of its formulas are") {
  const double k = GENERATE(2.0, 1.5);
  const double a = GENERATE(1.0, 1.25);
  const DeepScaleLM rule{.dropout = 0.1, .input_correlation = 0.221, .k = k, .a = a};
  const Plan plan = make_plan(rule, {.model = three_tables});
  REQUIRE(plan.model.residuals.size() == 12);
  for (const Residual& residual : plan.model.residuals) {
    REQUIRE(residual.where.size() == 1);
    CHECK(residual.where[0].text == "(1-β²)");
    CHECK(near(residual.where[0].value, 1 - k / std::pow(12, a)));
  }
}

TEST_CASE("DeepScaleLM's correlations where they are known") {
  // N = 12 and 192 layers, p = 0.1, r0 (1-p) = 0.2041: .7948 and .7896 after the last layer.
  const DeepScaleLM policy{.dropout = 0.1, .input_correlation = 0.2041 / 0.9};
  CHECK(std::abs(policy.token_correlations(12).back() - 0.7948) < 1e-4);
  CHECK(std::abs(policy.token_correlations(192).back() - 0.7896) < 1e-4);
  CHECK(near(policy.token_correlations(12).front(), 0.2041));
}
