// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/deep_norm.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

namespace {

// arXiv:2203.00555, cell by cell, retyped: Xavier's variance times beta² on value, output, up and
// down; normal in its Figure 2.
constexpr policy::Context one_stack{.shape = {.depth = 12}};
constexpr policy::Context encoder_stack{.shape = {.depth = 6, .encoder_depth = 18},
                                        .stack = Stack::encoder};
constexpr policy::Context decoder_stack{.shape = {.depth = 6, .encoder_depth = 18},
                                        .stack = Stack::decoder};
constexpr Scaling N_e{symbols::encoder_depth};
constexpr Scaling N_d{symbols::decoder_depth};

constexpr bool deep_norm(const policy::Context& context, const Scaling& alpha,
                         const Scaling& beta) {
  const Scaling small = beta * beta * 2 / fi_plus_fo;
  const auto of = [&](Group g) { return DeepNorm{}.row(g, context); };
  const ModelRow m = DeepNorm{}.model(context);
  return drawn(of(Group::query), 2 / fi_plus_fo) && drawn(of(Group::key), 2 / fi_plus_fo) &&
         drawn(of(Group::value), small) && drawn(of(Group::attention_output), small) &&
         drawn(of(Group::mlp_up), small) && drawn(of(Group::mlp_down), small) &&
         starts_at(of(Group::norm_gain), 1) && starts_at(of(Group::hidden_bias), 0) &&
         m.residual_skip == Multiplier(alpha) && m.residual_branch == Multiplier(1) &&
         m.attention_scale == Multiplier(1 / sqrt(C));
}
static_assert(deep_norm(one_stack, pow(2 * L, {1, 4}), pow(8 * L, {-1, 4})));
static_assert(deep_norm(encoder_stack, 0.81 * pow(pow(N_e, 4) * N_d, {1, 16}),
                        0.87 * pow(pow(N_e, 4) * N_d, {-1, 16})));
static_assert(deep_norm(decoder_stack, pow(3 * N_d, {1, 4}), pow(12 * N_d, {-1, 4})));
static_assert(DeepNorm{}.row(Group::mlp_up, one_stack).distribution == Distribution::normal);
static_assert(DeepNorm{}.row(Group::query, one_stack).distribution == Distribution::normal);

}  // namespace

TEST_CASE("DeepNorm numbers") {
  SECTION("encoder and decoder") {
    const Plan plan = make_plan(DeepNorm{}, {.model = encoder_decoder()});
    const double pair = std::pow(6.0, 4) * 4;
    const double encoder_gain = 0.87 * std::pow(pair, -1.0 / 16);
    const double decoder_gain = std::pow(12.0 * 4, -1.0 / 4);
    const auto stack = [&](const std::string& prefix, double gain) {
      check_variance(plan, prefix + "query", 2 / 128.0);
      check_variance(plan, prefix + "key", 2 / 128.0);
      check_variance(plan, prefix + "value", gain * gain * 2 / 128);
      check_variance(plan, prefix + "attention_output", gain * gain * 2 / 128);
    };
    stack("encoder.0.", encoder_gain);
    stack("encoder.5.", encoder_gain);
    stack("decoder.3.", decoder_gain);
    stack("decoder.3.cross_", decoder_gain);
    for (const char* name : {"mlp_up", "mlp_down"}) {
      check_variance(plan, std::string("encoder.2.") + name,
                     encoder_gain * encoder_gain * 2 / (64 + 256));
      check_variance(plan, std::string("decoder.2.") + name,
                     decoder_gain * decoder_gain * 2 / (64 + 256));
    }
    REQUIRE(plan.model.residuals.size() == 10);
    for (const Residual& residual : plan.model.residuals) {
      const bool encoder = residual.stack == Stack::encoder;
      CHECK(near(residual.skip.value,
                 encoder ? 0.81 * std::pow(pair, 1.0 / 16) : std::pow(3.0 * 4, 0.25)));
      CHECK(residual.branch.value == 1);
    }
  }
  SECTION("one stack") {
    const Plan plan = make_plan(DeepNorm{}, {.model = vision()});
    const double gain = std::pow(8.0 * 3, -0.25);
    check_variance(plan, "layer.1.value", gain * gain * 2 / 384);
    check_variance(plan, "layer.1.key", 2 / 384.0);
    check_variance(plan, "layer.1.mlp_down", gain * gain * 2 / (192 * 5));
    CHECK(near(plan.model.residuals.at(2).skip.value, std::pow(6.0, 0.25)));
  }
}
