// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/deep_scale_lm.hpp"

#include <numbers>

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

/// The recursion of DeepScaleLM, typed anew: r_1 ... r_L.
std::vector<double> correlations(double r0, double p, long layers, double k, double a) {
  const double share = k / std::pow(static_cast<double>(layers), a);
  std::vector<double> list;
  double c = (1 - p) * r0;
  for (long i = 0; i < layers; ++i) {
    list.push_back(c);
    c += share * ((1 - p) - c);  // the attention block's output has correlation 1 - p
    const double angle = std::acos(c);
    const double relu = (std::sin(angle) + (std::numbers::pi - angle) * c) / std::numbers::pi;
    c += share * ((1 - p) * relu - c);
  }
  return list;
}

}  // namespace

TEST_CASE("DeepScaleLM numbers") {
  Shape shape = three_tables;
  const double n = 256;
  const double p = GENERATE(0.0, 0.1, 0.3);
  const double k = GENERATE(2.0, 1.5);
  const double a = GENERATE(1.0, 1.25);
  CAPTURE(p, k, a);
  const DeepScaleLM policy{
      .dropout = p, .input_correlation = 0.25, .embedding_tables = 3, .k = k, .a = a};
  const Plan plan = make_plan(policy, {.model = shape});
  const std::vector<double> list = correlations(0.25, p, 12, k, a);
  CHECK(near(list[0], 0.25 * (1 - p)));
  const double mlp = std::sqrt(2 * (1 - p) / (700 * n));
  for (std::size_t layer = 0; layer < 12; ++layer) {
    const std::string prefix = "layer." + std::to_string(layer) + ".";
    const double attention = std::sqrt((1 - p) / list[layer]) / n;
    check_variance(plan, prefix + "query", 1 / n);
    check_variance(plan, prefix + "key", 1 / n);
    check_variance(plan, prefix + "value", attention);
    check_variance(plan, prefix + "attention_output", attention);
    check_variance(plan, prefix + "mlp_up", mlp);
    check_variance(plan, prefix + "mlp_down", mlp);
  }
  for (const char* name : {"token_embedding", "position_embedding", "segment_embedding"}) {
    check_variance(plan, name, (1 - p) / 3);
  }
  const double beta2 = k / std::pow(12.0, a);
  REQUIRE(plan.model.residuals.size() == 12);
  for (const Residual& residual : plan.model.residuals) {
    CHECK(near(residual.skip.value, std::sqrt(1 - beta2)));
    CHECK(near(residual.branch.value, std::sqrt(beta2)));
    REQUIRE(residual.where.size() == 1);  // what the letters of its formulas are
    CHECK(residual.where[0].text == "(1-β²)");
    CHECK(near(residual.where[0].value, 1 - k / std::pow(12, a)));
  }
  CHECK(near(plan.model.logit_multiplier.value, 1 / 16.0));
  CHECK(near(plan.model.attention_scale.value, 1 / 8.0));
  // The MLP keeps the variance at one for every F: n s1 F s2 / (2 (1-p)) = 1.
  CHECK(near(n * mlp * 700 * mlp / (2 * (1 - p)), 1));

  shape.tied_head = true;
  CHECK(near(make_plan(policy, {.model = shape}).model.logit_multiplier.value, 1 / 16.0));
}

TEST_CASE("DeepScaleLM's correlations where they are known") {
  // N = 12 and 192 layers, p = 0.1, r0 (1-p) = 0.2041: .7948 and .7896 after the last layer.
  const DeepScaleLM policy{.dropout = 0.1, .input_correlation = 0.2041 / 0.9};
  CHECK(std::abs(policy.token_correlations(12).back() - 0.7948) < 1e-4);
  CHECK(std::abs(policy.token_correlations(192).back() - 0.7896) < 1e-4);
  CHECK(near(policy.token_correlations(12).front(), 0.2041));
}
