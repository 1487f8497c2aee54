// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Maximal update parametrization, Tables 3, 8 and 9 of arXiv:2203.03466v2, cell by cell, retyped.
// fi and fo count as ratios to the base, each matrix with its own. Compiling this file is the test.

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

constexpr Scaling m_F = ratio(F);
constexpr Scaling m_KC = ratio(Scaling(Axis::kv_heads) * C);
constexpr Scaling m_out = ratio(n_out);

/// The row of a group with the fans of one matrix put in.
constexpr Row bound(Row rule, const Scaling& in, const Scaling& out) {
  const auto put = [&](Scaling& cell) {
    cell = substitute(substitute(cell, Axis::fan_in, in), Axis::fan_out, out);
  };
  put(rule.init_variance.scaling);
  put(rule.init_mean.scaling);
  put(rule.multiplier.scaling);
  put(rule.sgd_rate.scaling);
  put(rule.adamw_rate.scaling);
  put(rule.weight_decay.scaling);
  put(rule.epsilon.scaling);
  return rule;
}

/// Decay does not depend on width in the independent form (section B.3).
constexpr bool row(const Row& rule, const Scaling& variance, const Scaling& multiplier,
                   const Scaling& sgd, const Scaling& adam, const Scaling& epsilon) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.sgd_rate == Rate(sgd) && rule.adamw_rate == Rate(adam) &&
         rule.epsilon == Epsilon(epsilon) && rule.weight_decay == Decay(1) &&
         rule.decay_form == DecayForm::independent && rule.init_mean == Mean(0) &&
         !rule.source.empty();
}

/// A gain of the input column: acts as one, whatever its multiplier.
constexpr bool gain(const Row& rule, const Scaling& multiplier, const Scaling& sgd,
                    const Scaling& adam, const Scaling& epsilon) {
  return rule.init_variance == Variance(0) && rule.multiplier == Multiplier(multiplier) &&
         rule.init_mean == Mean(1 / multiplier) && rule.sgd_rate == Rate(sgd) &&
         rule.adamw_rate == Rate(adam) && rule.epsilon == Epsilon(epsilon);
}

constexpr bool zero(const Row& rule) {
  return rule.init_variance == Variance(0) && rule.init_mean == Mean(0);
}

// Each matrix with its own fans: a model whose heads fill its width.
constexpr Row in(const auto& p, Group g) { return bound(p.row(g), 1, n); }
constexpr Row square(const auto& p, Group g) { return bound(p.row(g), n, n); }
constexpr Row up(const auto& p, Group g) { return bound(p.row(g), n, F); }
constexpr Row down(const auto& p) { return bound(p.row(Group::mlp_down), F, n); }
constexpr Row head(const auto& p) { return bound(p.row(Group::head), n, n_out); }

constexpr bool attention(const auto& p, Group g) {
  return row(square(p, g), 1 / m_N, 1, 1, 1 / m_N, 1 / m_N);
}

/// Key and value of shared heads: fewer outputs than inputs.
constexpr bool grouped(const auto& p, Group g) {
  return row(bound(p.row(g), n, Scaling(Axis::kv_heads) * C), 1 / m_N, 1, m_KC / m_N, 1 / m_N,
             1 / sqrt(m_KC * m_N));
}

/// Query and output of heads that do not fill the width.
constexpr bool wide(const auto& p) {
  const Scaling all = Scaling(Axis::heads) * C;
  return row(bound(p.row(Group::query), n, all), 1 / m_N, 1, ratio(all) / m_N, 1 / m_N,
             1 / sqrt(ratio(all) * m_N)) &&
         row(bound(p.row(Group::attention_output), all, n), 1 / ratio(all), 1, m_N / ratio(all),
             1 / ratio(all), 1 / m_N);
}

/// The hidden column is the same in all three tables; under SGD fo/fi where they grow apart.
/// Epsilon: the outputs' gradient comes from the stream's, with entries of 1/n, through weights of
/// variance 1/fo; a sum of n incoherent terms is √n/(n√fo), the 1/n of the text where fo is n.
constexpr bool hidden_column(const auto& p) {
  return attention(p, Group::query) && attention(p, Group::key) && attention(p, Group::value) &&
         attention(p, Group::attention_output) && grouped(p, Group::key) &&
         grouped(p, Group::value) && wide(p) &&
         row(up(p, Group::mlp_up), 1 / m_N, 1, m_F / m_N, 1 / m_N, 1 / sqrt(m_F * m_N)) &&
         row(up(p, Group::mlp_gate), 1 / m_N, 1, m_F / m_N, 1 / m_N, 1 / sqrt(m_F * m_N)) &&
         row(down(p), 1 / m_F, 1, m_N / m_F, 1 / m_F, 1 / m_N);
}

// Table 3: 1/fi; 1/fi²; 1/fi | 1; 1; 1 | fo; 1/fi; 1 | 1; 1/fi; 1/fi.
// Gradients: embedding and hidden 1/n, head 1.
constexpr MaximalUpdateTable3 t3{};
static_assert(row(in(t3, Group::token_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(in(t3, Group::position_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(bound(t3.row(Group::patch_embedding), 1, n), 1, 1, m_N, 1, 1 / m_N));
static_assert(hidden_column(t3));
static_assert(row(head(t3), 1 / (m_N * m_N), 1, 1 / m_N, 1 / m_N, 1));
static_assert(gain(in(t3, Group::norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(gain(in(t3, Group::final_norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(zero(in(t3, Group::hidden_bias)));
static_assert(in(t3, Group::hidden_bias).sgd_rate == Rate(m_N));
static_assert(in(t3, Group::hidden_bias).adamw_rate == Rate(1));
static_assert(bound(t3.row(Group::hidden_bias), n, F).epsilon == Epsilon(1 / sqrt(m_F * m_N)));
static_assert(t3.model().tied_logit_multiplier == Multiplier(1 / m_N));

// Table 8: 1/fi; 1; 1/fi | 1; 1/fi; 1 | fo; fi; 1 | 1; 1; 1/fi. Gradients 1/n everywhere.
constexpr MaximalUpdateTable8 t8{};
static_assert(row(in(t8, Group::token_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(in(t8, Group::position_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(in(t8, Group::segment_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(bound(t8.row(Group::patch_embedding), 1, n), 1, 1, m_N, 1, 1 / m_N));
static_assert(hidden_column(t8));
static_assert(row(head(t8), 1, 1 / m_N, m_N, 1, 1 / m_N));
static_assert(gain(in(t8, Group::norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(gain(in(t8, Group::final_norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(zero(in(t8, Group::hidden_bias)));
static_assert(in(t8, Group::hidden_bias).sgd_rate == Rate(m_N));
static_assert(in(t8, Group::hidden_bias).adamw_rate == Rate(1));
static_assert(in(t8, Group::hidden_bias).epsilon == Epsilon(1 / m_N));
static_assert(bound(t8.row(Group::hidden_bias), n, F).epsilon == Epsilon(1 / sqrt(m_F * m_N)));
static_assert(t8.model().tied_logit_multiplier == Multiplier(1 / m_N));

// Table 9: 1/fo; 1/fi; 1/fi | √fo; 1/√fi; 1 | 1; 1; 1 | 1/√fo; 1/√fi; 1/fi.
// Gradients: embedding and head 1/√n, hidden 1/n.
constexpr MaximalUpdateTable9 t9{};
constexpr Scaling root_N = sqrt(m_N);
static_assert(row(in(t9, Group::token_embedding), 1 / m_N, root_N, 1, 1 / root_N, 1 / root_N));
static_assert(row(in(t9, Group::position_embedding), 1 / m_N, root_N, 1, 1 / root_N, 1 / root_N));
static_assert(hidden_column(t9));
static_assert(row(head(t9), 1 / m_N, 1 / root_N, 1, 1 / root_N, 1 / root_N));
static_assert(gain(in(t9, Group::norm_gain), root_N, 1, 1 / root_N, 1 / root_N));
static_assert(gain(in(t9, Group::final_norm_gain), root_N, 1, 1 / root_N, 1 / root_N));
static_assert(zero(in(t9, Group::hidden_bias)));
static_assert(in(t9, Group::hidden_bias).sgd_rate == Rate(1));
static_assert(in(t9, Group::hidden_bias).adamw_rate == Rate(1 / root_N));
static_assert(bound(t9.row(Group::hidden_bias), n, F).epsilon == Epsilon(1 / root_N));
static_assert(t9.model().tied_logit_multiplier == Multiplier(1 / root_N));

/// Attention scale √C0/C with C0 = C/m_C; residuals untouched.
constexpr bool model(const ModelRow& m) {
  return m.attention_scale == Multiplier(sqrt(C / m_C) / C) && m.residual_skip == Multiplier(1) &&
         m.residual_branch == Multiplier(1) && m.logit_multiplier == Multiplier(1);
}
static_assert(model(t3.model()));
static_assert(model(t8.model()));
static_assert(model(t9.model()));

// A bias of the head is an input-column vector whose fan-in is constant: its gradient is the
// logits' own, so nothing scales as long as the number of outputs stays.
static_assert(bound(t8.row(Group::head_bias), n, n_out).adamw_rate == Rate(1));
static_assert(bound(t8.row(Group::head_bias), n, n_out).sgd_rate.scaling / m_out == Scaling(1) ||
              bound(t8.row(Group::head_bias), n, n_out).sgd_rate == Rate(1));
static_assert(bound(t8.row(Group::head_bias), n, n_out).epsilon == Epsilon(1));

/// Symmetry: with t the ratio of multipliers, std/t, Adam rate/t, SGD rate/t², epsilon·t.
constexpr bool same_up_to_scale(const Row& a, const Row& b) {
  const Scaling t = a.multiplier.scaling / b.multiplier.scaling;
  return a.init_variance.scaling * t * t == b.init_variance.scaling &&
         a.init_mean.scaling * t == b.init_mean.scaling &&
         a.sgd_rate.scaling * t * t == b.sgd_rate.scaling &&
         a.adamw_rate.scaling * t == b.adamw_rate.scaling &&
         a.epsilon.scaling == b.epsilon.scaling * t;
}
constexpr bool all_same(const auto& a, const auto& b) {
  for (const Group g : {Group::token_embedding, Group::position_embedding, Group::norm_gain,
                        Group::norm_bias, Group::hidden_bias, Group::final_norm_gain}) {
    if (!same_up_to_scale(in(a, g), in(b, g))) return false;
  }
  for (const Group g : {Group::query, Group::key, Group::value, Group::attention_output}) {
    if (!same_up_to_scale(square(a, g), square(b, g))) return false;
  }
  return same_up_to_scale(bound(a.row(Group::hidden_bias), n, F),
                          bound(b.row(Group::hidden_bias), n, F)) &&
         same_up_to_scale(up(a, Group::mlp_up), up(b, Group::mlp_up)) &&
         same_up_to_scale(down(a), down(b)) && same_up_to_scale(head(a), head(b));
}
static_assert(all_same(t3, t8));
static_assert(all_same(t8, t9));
static_assert(all_same(t9, t3));

// The formulation by number, Table 8 by default; zero initialization as an option.
static_assert(head(MaximalUpdate{}).multiplier == Multiplier(1 / m_N));
static_assert(head(MaximalUpdate{.table = 3}).init_variance == Variance(1 / (m_N * m_N)));
static_assert(head(MaximalUpdate{.table = 8}).sgd_rate == Rate(m_N));
static_assert(head(MaximalUpdate{.table = 9}).multiplier == Multiplier(1 / root_N));
static_assert(hidden_column(MaximalUpdate{.table = 3}));
static_assert(hidden_column(MaximalUpdate{}));
static_assert(hidden_column(MaximalUpdate{.table = 9}));
static_assert(model(MaximalUpdate{}.model()));
static_assert(MaximalUpdate{}.model().tied_logit_multiplier == Multiplier(1 / m_N));
static_assert(MaximalUpdate{.table = 9}.model().tied_logit_multiplier == Multiplier(1 / root_N));

constexpr MaximalUpdate zeroed{.zero_head = true, .zero_query = true};
static_assert(zero(head(zeroed)));
static_assert(zero(square(zeroed, Group::query)));
static_assert(head(zeroed).multiplier == Multiplier(1 / m_N));
static_assert(square(zeroed, Group::query).adamw_rate == Rate(1 / m_N));
static_assert(square(zeroed, Group::key).init_variance == Variance(1 / m_N));
static_assert(MaximalUpdate::reference == Reference::base);
static_assert(MaximalUpdateTable3::reference == Reference::base);
static_assert(MaximalUpdateTable8::reference == Reference::base);
static_assert(MaximalUpdateTable9::reference == Reference::base);

}  // namespace
