// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// CompleteP and Depth-muP, Table 1 of arXiv:2505.01618, cell by cell, retyped. AdamW only; decay in
// the coupled form. Compiling this file is the test.

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

constexpr Scaling m_F = ratio(F);

/// The row of a group with the fans of one matrix put in.
constexpr Row bound(Row rule, const Scaling& in, const Scaling& out) {
  const auto put = [&](Scaling& cell) {
    cell = substitute(substitute(cell, Axis::fan_in, in), Axis::fan_out, out);
  };
  put(rule.init_variance.scaling);
  put(rule.multiplier.scaling);
  put(rule.adamw_rate.scaling);
  put(rule.weight_decay.scaling);
  put(rule.epsilon.scaling);
  return rule;
}

constexpr bool row(const Row& rule, const Scaling& variance, const Scaling& multiplier,
                   const Scaling& rate, const Scaling& decay, const Scaling& epsilon) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.adamw_rate == Rate(rate) && rule.weight_decay == Decay(decay) &&
         rule.decay_form == DecayForm::coupled && rule.epsilon == Epsilon(epsilon) &&
         rule.init_mean == Mean(0) && !rule.source.empty();
}

/// A gain or bias: starts at a value, is not decayed.
constexpr bool vector(const Row& rule, double start, const Scaling& rate, const Scaling& epsilon) {
  return rule.init_mean == Mean(start) && rule.init_variance == Variance(0) &&
         rule.multiplier == Multiplier(1) && rule.adamw_rate == Rate(rate) &&
         rule.weight_decay == Decay(0) && rule.epsilon == Epsilon(epsilon);
}

/// The whole table for one alpha.
constexpr bool table(const auto& p, Exponent alpha) {
  const Scaling block_rate = pow(m_L, alpha - 1);
  const Scaling block_epsilon = 1 / (m_N * pow(m_L, alpha));
  const auto in = [&](Group g) { return bound(p.row(g), 1, n); };
  const auto square = [&](Group g) {
    return row(bound(p.row(g), n, n), 1 / m_N, 1, block_rate / m_N, m_N, block_epsilon);
  };
  // The table's m_N in the epsilon of a matrix whose fan-out ratio m_fo differs is √(m_fo·m_N).
  const Scaling up_epsilon = 1 / (sqrt(m_F * m_N) * pow(m_L, alpha));
  const auto up = [&](Group g) {
    return row(bound(p.row(g), n, F), 1 / m_N, 1, block_rate / m_N, m_N, up_epsilon);
  };
  const Scaling shared = Scaling(Axis::kv_heads) * C;
  const auto grouped = [&](Group g) {
    return row(bound(p.row(g), n, shared), 1 / m_N, 1, block_rate / m_N, m_N,
               1 / (sqrt(ratio(shared) * m_N) * pow(m_L, alpha)));
  };
  const Scaling all = Scaling(Axis::heads) * C;
  const auto output = bound(p.row(Group::attention_output), all, n);
  return row(output, 1 / ratio(all), 1, block_rate / ratio(all), ratio(all), block_epsilon) &&
         row(in(Group::token_embedding), 1, 1, 1, 1, 1 / m_N) &&
         row(in(Group::position_embedding), 1, 1, 1, 1, 1 / m_N) &&
         row(bound(p.row(Group::patch_embedding), n_patch, n), 1, 1, 1, 1, 1 / m_N) &&
         square(Group::query) && square(Group::key) && square(Group::value) &&
         square(Group::attention_output) && grouped(Group::key) && grouped(Group::value) &&
         up(Group::mlp_up) && up(Group::mlp_gate) &&
         row(bound(p.row(Group::mlp_down), F, n), 1 / m_F, 1, block_rate / m_F, m_F,
             block_epsilon) &&
         vector(in(Group::norm_gain), 1, block_rate, block_epsilon) &&
         vector(in(Group::norm_bias), 0, block_rate, block_epsilon) &&
         vector(in(Group::hidden_bias), 0, block_rate, block_epsilon) &&
         vector(bound(p.row(Group::hidden_bias), n, F), 0, block_rate, block_epsilon) &&
         vector(bound(p.row(Group::hidden_bias), n, shared), 0, block_rate, block_epsilon) &&
         vector(in(Group::final_norm_gain), 1, 1, 1 / m_N) &&
         vector(in(Group::final_norm_bias), 0, 1, 1 / m_N) &&
         row(bound(p.row(Group::head), n, n_out), 1, 1 / m_N, 1, 1, 1 / m_N);
}

constexpr bool model(const ModelRow& m, Exponent alpha) {
  return m.residual_skip == Multiplier(1) && m.residual_branch == Multiplier(pow(m_L, -alpha)) &&
         m.attention_scale == Multiplier(sqrt(C / m_C) / C) &&
         m.logit_multiplier == Multiplier(1) && m.tied_logit_multiplier == Multiplier(1 / m_N);
}

static_assert(table(CompleteP{}, 1));
static_assert(model(CompleteP{}.model(), 1));
static_assert(table(CompleteP{.alpha = 0.5}, {1, 2}));
static_assert(model(CompleteP{.alpha = 0.5}.model(), {1, 2}));
static_assert(table(CompleteP{.alpha = 0.75}, {3, 4}));
static_assert(model(CompleteP{.alpha = 0.75}.model(), {3, 4}));
static_assert(table(CompleteP{.alpha = 0.6}, {3, 5}));
static_assert(table(CompleteP{.alpha = 0.7}, {7, 10}));
static_assert(table(CompleteP{.alpha = 0.8}, {4, 5}));
static_assert(table(CompleteP{.alpha = 0.9}, {9, 10}));
static_assert(table(DepthMup{}, {1, 2}));
static_assert(model(DepthMup{}.model(), {1, 2}));

// At alpha = 1 no rate depends on depth; at 1/2 the rates of the blocks fall with its root.
static_assert(CompleteP{}.row(Group::query).adamw_rate.scaling.exponent_of(Axis::depth) ==
              Exponent(0));
static_assert(DepthMup{}.row(Group::query).adamw_rate.scaling.exponent_of(Axis::depth) ==
              Exponent(-1, 2));

// AdamW alone.
static_assert(CompleteP::supports(Optimizer::adamw) && !CompleteP::supports(Optimizer::sgd));
static_assert(DepthMup::supports(Optimizer::adamw) && !DepthMup::supports(Optimizer::sgd));
static_assert(CompleteP::reference == Reference::base);
static_assert(DepthMup::reference == Reference::base);

// Width part: maximal update, Table 8, with its decay written in the coupled form.
constexpr bool width_part(Group g) {
  const Row mup = MaximalUpdateTable8{}.row(g);
  const Row cp = CompleteP{}.row(g);
  return bound(mup, n, n).adamw_rate == bound(cp, n, n).adamw_rate &&
         bound(mup, n, n).init_variance == bound(cp, n, n).init_variance &&
         bound(mup, n, n).multiplier == bound(cp, n, n).multiplier;
}
static_assert(width_part(Group::query));
static_assert(width_part(Group::mlp_down));
static_assert(width_part(Group::head));

}  // namespace
