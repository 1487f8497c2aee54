// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Rows that the tables of several rules have in common.

#pragma once

#include <algorithm>
#include <initializer_list>

#include "scalewise/policy/deep_scale_lm.hpp"
#include "support/numbers.hpp"

namespace scalewise::test {

inline constexpr Scaling HC = Scaling(symbols::heads) * symbols::C;     // width of all heads
inline constexpr Scaling KC = Scaling(symbols::kv_heads) * symbols::C;  // of keys and values

using Groups = std::initializer_list<Group>;
inline constexpr Groups matrices{
    Group::query,  Group::key,      Group::value,   Group::attention_output,
    Group::mlp_up, Group::mlp_gate, Group::mlp_down};
inline constexpr Groups tables{Group::token_embedding, Group::position_embedding,
                               Group::segment_embedding};
inline constexpr Groups norm_gains{Group::norm_gain, Group::embedding_norm_gain,
                                   Group::final_norm_gain};
inline constexpr Groups norm_biases{Group::norm_bias, Group::embedding_norm_bias,
                                    Group::final_norm_bias};
inline constexpr Groups linear_biases{Group::hidden_bias, Group::head_bias, Group::patch_bias};

/// The row with the fans of one matrix put in, so that 1/fi and 1/n are the same cell.
constexpr Row bound(Row row, const Scaling& in, const Scaling& out) {
  const auto put = [&](const Scaling& cell) {
    return substitute(substitute(cell, symbols::fan_in, in), symbols::fan_out, out);
  };
  for (const Optimizer& optimizer : {sgd, adamw, muon}) {
    if (row.rates.has(optimizer)) row.rates.set(optimizer, put(row.rate(optimizer).scaling));
  }
  row.init_variance = put(row.init_variance.scaling);
  row.init_mean = put(row.init_mean.scaling);
  row.multiplier = put(row.multiplier.scaling);
  row.weight_decay = put(row.weight_decay.scaling);
  row.epsilon = put(row.epsilon.scaling);
  return row;
}

/// The rows of a model whose heads fill its width.
constexpr Row fans(const auto& policy, Group g, const policy::Context& context = {}) {
  using namespace symbols;
  using enum Group;
  const auto is = [&](auto... groups) { return ((g == groups) || ...); };
  const Row row = policy::row_of(policy, g, context);
  if (is(patch_embedding, patch_bias)) return bound(row, n_patch, n);
  if (is(mlp_up, mlp_gate)) return bound(row, n, F);
  if (g == mlp_down) return bound(row, F, n);
  if (is(head, head_bias)) return bound(row, n, n_out);
  return bound(row, is(query, key, value, attention_output) ? n : Scaling(1), n);
}

/// Calls check(group, fan-in, fan-out) for the hidden matrices: of heads that fill the width, of
/// others and of shared ones.
constexpr bool hidden_matrices(auto&& check) {
  using namespace symbols;
  using enum Group;
  return check(query, n, n) && check(key, n, n) && check(value, n, n) &&
         check(attention_output, n, n) && check(query, n, HC) && check(key, n, KC) &&
         check(value, n, KC) && check(attention_output, HC, n) && check(mlp_up, n, F) &&
         check(mlp_gate, n, F) && check(mlp_down, F, n);
}

/// A random tensor, or several, under a rule that scales nothing but the initialization.
constexpr bool drawn(const Row& rule, const Scaling& variance,
                     Distribution distribution = Distribution::normal,
                     const Scaling& multiplier = 1) {
  return rule.init_variance == Variance(variance) && rule.distribution == distribution &&
         rule.multiplier == Multiplier(multiplier) && rule.init_mean == Mean(0) &&
         rule.rate(sgd) == Rate(1) && rule.rate(adamw) == Rate(1) &&
         rule.weight_decay == Decay(1) && rule.epsilon == Epsilon(1) && !rule.source.empty();
}
template <class P>
constexpr bool drawn(Groups groups, const auto&... cells) {
  return std::ranges::all_of(groups, [&](Group g) { return drawn(P{}.row(g), cells...); });
}

/// A tensor that starts at one value everywhere, or several.
constexpr bool starts_at(const Row& rule, double value, double decay = 1) {
  return rule.init_variance == Variance(0) && rule.init_mean == Mean(value) &&
         rule.multiplier == Multiplier(1) && rule.rate(sgd) == Rate(1) &&
         rule.rate(adamw) == Rate(1) && rule.weight_decay == Decay(decay) &&
         rule.epsilon == Epsilon(1) && rule.distribution == Distribution::constant;
}
template <class P>
constexpr bool starts_at(Groups groups, const auto&... cells) {
  return std::ranges::all_of(groups, [&](Group g) { return starts_at(P{}.row(g), cells...); });
}

constexpr bool plain_model(const ModelRow& m, const Scaling& tied_logits) {
  return m.attention_scale == Multiplier(1 / sqrt(symbols::C)) &&
         m.residual_skip == Multiplier(1) && m.residual_branch == Multiplier(1) &&
         m.logit_multiplier == Multiplier(1) && m.tied_logit_multiplier == Multiplier(tied_logits);
}

/// A row of the effective theory, arXiv:2304.02034v1. Decay is (1 - eta wd) with the global eta,
/// (1.94): factor one in the independent form. Adam's epsilon follows the gradient, whose size is
/// the ratio of the two rates.
constexpr bool cells(const Row& rule, const Scaling& variance, const Scaling& by_sgd,
                     const Scaling& by_adamw, double decay = 1) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(1) &&
         rule.init_mean == Mean(0) && rule.rate(sgd) == Rate(by_sgd) &&
         rule.rate(adamw) == Rate(by_adamw) && rule.weight_decay == Decay(decay) &&
         rule.decay_form == DecayForm::independent && rule.epsilon == Epsilon(by_adamw / by_sgd) &&
         !rule.source.empty();
}

// DeepScaleLM, arXiv:2403.09635, cell by cell, retyped: all are variances.
inline constexpr Scaling keep{DeepScaleLM::keep_probability};  // 1 - p
inline constexpr Scaling dslm_mlp = sqrt(2 * keep / (symbols::F * symbols::n));

/// Rows that both of its forms share.
constexpr bool dslm_rows(const auto& p) {
  using symbols::n;
  constexpr policy::Context one_table{.shape = {.learned_positions = false}};
  return drawn(fans(p, Group::query), 1 / n) && drawn(fans(p, Group::key), 1 / n) &&
         drawn(fans(p, Group::mlp_up), dslm_mlp) && drawn(fans(p, Group::mlp_down), dslm_mlp) &&
         drawn(fans(p, Group::token_embedding, one_table), keep) &&
         starts_at(fans(p, Group::norm_gain), 1) && starts_at(fans(p, Group::hidden_bias), 0);
}

/// lambda² = 1 - k/N^a, beta² = k/N^a; logits 1/sqrt(n); scores 1/sqrt(C).
constexpr bool dslm_model(const ModelRow& m, const Scaling& beta) {
  constexpr Scaling lambda2{DeepScaleLM::skip_power};  // 1 - beta²
  return m.residual_skip == Multiplier(sqrt(lambda2)) && m.residual_branch == Multiplier(beta) &&
         m.attention_scale == Multiplier(1 / sqrt(symbols::C)) &&
         m.logit_multiplier.scaling * m.tied_logit_multiplier.scaling == 1 / sqrt(symbols::n);
}

/// A model with three embedding tables.
inline constexpr Shape three_tables{.d_model = 256,
                                    .depth = 12,
                                    .heads = 4,
                                    .d_ff = 700,
                                    .context = 64,
                                    .vocab = 1000,
                                    .segments = 2};

}  // namespace scalewise::test
