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
