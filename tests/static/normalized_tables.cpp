// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The normalized transformers, Tables 1 and 2 of arXiv:2604.27077v2, cell by cell, retyped.
// Compiling this file is the test.

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

/// One column of the tables. Rates are the products that reach the optimizer.
struct Column {
  Scaling global;
  Scaling input;
  Scaling hidden;
  Scaling output;
  Scaling step_init;
  Scaling scale;  // stored start of alpha_A, alpha_M, s_qk, s_z
  Scaling logit_init;
};

/// All are drawn alike, as nGPT does, and normalized before the first step; nothing is decayed.
constexpr bool matrix(const Row& rule, const Scaling& rate) {
  return rule.adamw_rate == Rate(rate) && rule.weight_decay == Decay(0) &&
         rule.multiplier == Multiplier(1) && rule.init_mean == Mean(0) &&
         rule.init_variance == Variance(1 / n) && rule.epsilon == Epsilon(1) &&
         !rule.source.empty();
}

/// Effective value (init/scale) * stored, stored starts at scale. The sqrt(n) of the gate's branch,
/// v = W_v h * s_v * sqrt(n), stands in the model's equation and is no cell of the tables.
constexpr bool rescaler(const Row& rule, const Scaling& init, const Scaling& scale,
                        const Scaling& rate) {
  return rule.init_mean == Mean(scale) && rule.init_variance == Variance(0) &&
         rule.multiplier == Multiplier(init / scale) && rule.adamw_rate == Rate(rate) &&
         rule.weight_decay == Decay(0) && rule.epsilon == Epsilon(1) &&
         rule.distribution == Distribution::constant;
}

constexpr bool column(const auto& p, const Column& c) {
  const auto hidden = [&](Group g) { return matrix(p.row(g), c.global * c.hidden); };
  return matrix(p.row(Group::token_embedding), c.global * c.input) && hidden(Group::query) &&
         hidden(Group::key) && hidden(Group::value) && hidden(Group::attention_output) &&
         hidden(Group::mlp_up) && hidden(Group::mlp_gate) && hidden(Group::mlp_down) &&
         matrix(p.row(Group::head), c.global * c.output) &&
         rescaler(p.row(Group::attention_step), c.step_init, c.scale, c.global) &&
         rescaler(p.row(Group::mlp_step), c.step_init, c.scale, c.global) &&
         rescaler(p.row(Group::qk_scale), 1, c.scale, c.global) &&
         rescaler(p.row(Group::up_scale), 1, 1, c.global) &&
         rescaler(p.row(Group::gate_scale), 1, 1, c.global) &&
         rescaler(p.row(Group::logit_scale), c.logit_init, c.scale, c.global);
}

/// Unit queries and keys, hence sqrt(C); the steps take the place of the residual multipliers.
constexpr bool model(const ModelRow& m) {
  return m.attention_scale == Multiplier(sqrt(C)) && m.logit_multiplier == Multiplier(1);
}

// nGPT
static_assert(column(NGpt{}, {.global = 1,
                              .input = 1,
                              .hidden = 1,
                              .output = 1,
                              .step_init = 0.05,
                              .scale = 1 / sqrt(n),
                              .logit_init = 1}));
static_assert(model(NGpt{}.model()));

// nGPT with Depth-muP
static_assert(column(NGptDepthMup{}, {.global = 1,
                                      .input = 1 / sqrt(m_N),
                                      .hidden = 1 / (m_N * sqrt(m_L)),
                                      .output = 1 / m_N,
                                      .step_init = 0.05 / sqrt(m_L),
                                      .scale = 0.03,
                                      .logit_init = 1}));
static_assert(model(NGptDepthMup{}.model()));

// nGPT with CompleteP (muP)
static_assert(column(NGptCompleteP{}, {.global = 1,
                                       .input = 1 / sqrt(m_N),
                                       .hidden = 1 / m_N,
                                       .output = 1 / m_N,
                                       .step_init = 0.05 / m_L,
                                       .scale = 0.03,
                                       .logit_init = 1}));
static_assert(model(NGptCompleteP{}.model()));

// nuGPT: every rate times m_D^(-1/3)
constexpr Scaling horizon = pow(m_D, {-1, 3});
constexpr Column nu_gpt{.global = horizon,
                        .input = 1 / sqrt(m_N),
                        .hidden = pow(m_N, {-3, 4}),
                        .output = pow(m_N, {-3, 4}),
                        .step_init = 0.05 / m_L,
                        .scale = 0.03,
                        .logit_init = sqrt(m_N)};
static_assert(column(NuGpt{}, nu_gpt));
static_assert(model(NuGpt{}.model()));

// nuGPT, full alignment
static_assert(column(NuGptFullAlign{}, {.global = horizon,
                                        .input = 1 / sqrt(m_N),
                                        .hidden = 1 / m_N,
                                        .output = 1 / m_N,
                                        .step_init = 0.05 / m_L,
                                        .scale = 0.03,
                                        .logit_init = sqrt(m_N)}));
static_assert(model(NuGptFullAlign{}.model()));

// The alignment exponent of Definition 3.2: none 1/2, mid 3/4, full 1, and anything between.
constexpr Column aligned(Exponent alignment) {
  Column c = nu_gpt;
  c.hidden = pow(m_N, -alignment);
  c.output = pow(m_N, -alignment);
  return c;
}
static_assert(column(NuGpt{.alignment = 0.5}, aligned({1, 2})));
static_assert(column(NuGpt{.alignment = 0.6}, aligned({3, 5})));
static_assert(column(NuGpt{.alignment = 0.75}, aligned({3, 4})));
static_assert(column(NuGpt{.alignment = 1}, aligned(1)));

// Constants on the input and output rates, and on no other.
constexpr Column tuned() {
  Column c = nu_gpt;
  c.input = 2 * c.input;
  c.output = 0.5 * c.output;
  return c;
}
static_assert(column(NuGpt{.input_rate = 2, .output_rate = 0.5}, tuned()));

// nGPT is a rule of its own numbers; the others need the base.
static_assert(!NGpt{}.row(Group::query).adamw_rate.scaling.is_relative());
static_assert(NuGpt{}.row(Group::query).adamw_rate.scaling.is_relative());
static_assert(!NGpt::supports(Optimizer::sgd) && NGpt::supports(Optimizer::adamw));
static_assert(!NGptDepthMup::supports(Optimizer::sgd));
static_assert(!NGptCompleteP::supports(Optimizer::sgd));
static_assert(!NuGpt::supports(Optimizer::sgd));
static_assert(!NuGptFullAlign::supports(Optimizer::sgd));

}  // namespace
