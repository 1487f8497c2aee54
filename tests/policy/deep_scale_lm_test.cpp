// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/deep_scale_lm.hpp"

#include <string_view>
#include <vector>

#include "scalewise/policy/deep_scale_lm_simple.hpp"
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

TEST_CASE("DeepScaleLM's skip connection may keep its size") {
  // Section 3.4: λ = 1 slows the correlation down. β² = 2/12; variances 1 + l/3, covariances in NumPy.
  const DeepScaleLM one{.dropout = 0.1, .input_correlation = 0.221, .unit_skip = true};
  const Plan plan = make_plan(one, {.model = three_tables});
  for (const Residual& residual : plan.model.residuals) {
    CHECK(residual.skip.value == 1);
    CHECK(near(residual.branch.value, std::sqrt(2 / 12.0)));
    CHECK(residual.where.empty());
  }
  const std::vector<double> r = one.token_correlations(12);
  const std::vector<double> text =
      DeepScaleLM{.dropout = 0.1, .input_correlation = 0.221}.token_correlations(12);
  CHECK(near(r[0], 0.1989));
  const double attention = (0.1989 + 0.9 / 6) / (7 / 6.0);
  const double hidden =
      attention / 2 +
      (std::sqrt(1 - attention * attention) + attention * std::asin(attention)) / 3.14159265358979;
  CHECK(std::abs(r[1] - (7 / 6.0 * attention + 0.9 * hidden / 6) / (4 / 3.0)) < 1e-12);
  for (std::size_t l = 1; l <= 12; ++l) CHECK(r[l] < text[l]);
  CHECK_NOTHROW(
      make_plan(DeepScaleLM{.dropout = 0.1, .input_correlation = 0.221, .k = 20, .unit_skip = true},
                {.model = three_tables}));
}

TEST_CASE("DeepScaleLM's MLPs with GELU, SiLU and gates have the numbers of NumPy") {
  // Gauss-Hermite rules of 180 points and bisection: v of v M = 0.9 n/F, or v² M with a gate, and the recursion
  // with M(r)/M(1), or r M(r)/M(1), over 12 layers.
  struct Case {
    Activation activation;
    bool gated;
    long width, hidden;
    double v, first, last;
  };
  for (const Case& c : {Case{Activation::gelu, false, 64, 256, 0.7442052173544433,
                             0.320452111134655, 0.763336132451243},
                        Case{Activation::silu, false, 64, 256, 0.8097878667210522,
                             0.3160922727237336, 0.7592853710731405},
                        Case{Activation::gelu, true, 96, 256, 0.9292079577644782, 0.281640773754696,
                             0.5881799406601784},
                        Case{Activation::silu, true, 4096, 14336, 0.9027188732658383,
                             0.2799934623763775, 0.5817600844685473}}) {
    CAPTURE(c.activation, c.gated);
    Shape shape{
        .d_model = c.width, .depth = 12, .heads = 2, .d_ff = c.hidden, .context = 8, .vocab = 30};
    shape.activation = c.activation;
    shape.gated_mlp = c.gated;
    const DeepScaleLM rule{.dropout = 0.1, .input_correlation = 0.221};
    const Plan plan = make_plan(rule, {.model = shape});
    for (const char* name : {"layer.0.mlp_up", "layer.11.mlp_down", "layer.3.mlp_gate"}) {
      if (!c.gated && std::string_view(name).ends_with("gate")) continue;
      const auto n = static_cast<double>(c.width);
      CHECK(std::abs(plan.at(name).init_variance.value * n / c.v - 1) < 1e-11);
    }
    const std::vector<double> r = rule.token_correlations(12, plan.shape);
    CHECK(std::abs(r[1] - c.first) < 1e-11);
    CHECK(std::abs(r[12] - c.last) < 1e-11);
    CHECK(near(plan.at("layer.1.value").init_variance.value,
               std::sqrt(0.9 / r[1]) / static_cast<double>(c.width)));
  }
  // A gate with ReLU: v² v/2 = (1-p) n/F.
  Shape shape{.d_model = 64, .depth = 12, .heads = 2, .d_ff = 64, .context = 8, .vocab = 30};
  shape.gated_mlp = true;
  const Plan plan = make_plan(DeepScaleLMSimple{.full = {.dropout = 0.1}}, {.model = shape});
  CHECK(near(plan.at("layer.0.mlp_gate").init_variance.value, std::cbrt(1.8) / 64));
}

TEST_CASE("DeepScaleLM's beta may be learned: a gain of one on each branch") {
  const DeepScaleLM rule{.dropout = 0.1, .input_correlation = 0.221, .learned_beta = true};
  const Plan plan = make_plan(rule, {.model = three_tables});
  for (const char* name : {"layer.0.attention_gain", "layer.11.mlp_gain"}) {
    const Entry& gain = plan.at(name);
    CHECK(gain.rows * gain.columns == 1);
    CHECK(gain.init_mean.value == 1);
    CHECK(gain.init_variance.value == 0);
    CHECK(gain.learning_rate.value == 1);
  }
  CHECK(near(plan.model.residuals[0].branch.value, std::sqrt(2 / 12.0)));
  const DeepScaleLM fixed{.dropout = 0.1, .input_correlation = 0.221};
  CHECK(plan.entries.size() == make_plan(fixed, {.model = three_tables}).entries.size() + 24);
}
