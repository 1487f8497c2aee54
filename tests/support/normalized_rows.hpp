// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// One column of Tables 1 and 2 of arXiv:2604.27077v2, as rows.

#pragma once

#include "support/numbers.hpp"

namespace scalewise::test {

/// Rates are the products that reach the optimizer; `scale` is the stored start of alpha_A,
/// alpha_M, s_qk and s_z.
struct Column {
  Scaling global, input, hidden, output, step_init, scale, logit_init;
};

/// All are drawn alike, as nGPT does, and normalized before the first step; nothing is decayed.
constexpr bool normalized_matrix(const Row& rule, const Scaling& rate) {
  return rule.rate(adamw) == Rate(rate) && rule.weight_decay == Decay(0) &&
         rule.multiplier == Multiplier(1) && rule.init_mean == Mean(0) &&
         rule.init_variance == Variance(1 / symbols::n) && rule.epsilon == Epsilon(1) &&
         !rule.source.empty();
}

/// Effective value (init/scale) * stored, stored starts at scale. The sqrt(n) of the gate's branch,
/// v = W_v h * s_v * sqrt(n), stands in the model's equation and is not a cell of the tables.
constexpr bool rescaler(const Row& rule, const Scaling& init, const Scaling& scale,
                        const Scaling& rate) {
  return rule.init_mean == Mean(scale) && rule.init_variance == Variance(0) &&
         rule.multiplier == Multiplier(init / scale) && rule.rate(adamw) == Rate(rate) &&
         rule.weight_decay == Decay(0) && rule.epsilon == Epsilon(1) &&
         rule.distribution == Distribution::constant;
}

constexpr bool has_column(const auto& p, const Column& c) {
  const auto matrix = [&](Group g, const Scaling& rate) {
    return normalized_matrix(p.row(g), c.global * rate);
  };
  const auto hidden = [&](Group g) { return matrix(g, c.hidden); };
  const auto gain = [&](Group g, const Scaling& init, const Scaling& scale) {
    return rescaler(p.row(g), init, scale, c.global);
  };
  return matrix(Group::token_embedding, c.input) && hidden(Group::query) && hidden(Group::key) &&
         hidden(Group::value) && hidden(Group::attention_output) && hidden(Group::mlp_up) &&
         hidden(Group::mlp_gate) && hidden(Group::mlp_down) && matrix(Group::head, c.output) &&
         gain(Group::attention_step, c.step_init, c.scale) &&
         gain(Group::mlp_step, c.step_init, c.scale) && gain(Group::qk_scale, 1, c.scale) &&
         gain(Group::up_scale, 1, 1) && gain(Group::gate_scale, 1, 1) &&
         gain(Group::logit_scale, c.logit_init, c.scale);
}

/// Unit queries and keys, hence sqrt(C); the steps take the place of the residual multipliers.
constexpr bool unit_model(const ModelRow& m) {
  return m.attention_scale == Multiplier(sqrt(symbols::C)) && m.logit_multiplier == Multiplier(1);
}

}  // namespace scalewise::test
