// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/complete_p.hpp"

#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

// A row with the fans of a matrix put in is bound(row, fan-in, fan-out); fans(policy, group) does it
// for a model whose heads fill its width. hidden_matrices(f) calls f(group, fan-in, fan-out) for query to
// mlp_down, with keys and values that heads share, too.

/// CompleteP, Table 1 of arXiv:2505.01618. AdamW only; decay in the coupled form.
constexpr bool complete_p_row(const Row& rule, const Scaling& variance, const Scaling& multiplier,
                              const Scaling& rate, const Scaling& decay, const Scaling& epsilon) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.rate(adamw) == Rate(rate) && rule.weight_decay == Decay(decay) &&
         rule.decay_form == DecayForm::coupled && rule.epsilon == Epsilon(epsilon) &&
         rule.init_mean == Mean(0) && !rule.source.empty();
}

/// A gain or bias: starts at a value, is not decayed.
constexpr bool complete_p_vector(const Row& rule, double start, const Scaling& rate,
                                 const Scaling& epsilon) {
  return rule.init_mean == Mean(start) && rule.init_variance == Variance(0) &&
         rule.multiplier == Multiplier(1) && rule.rate(adamw) == Rate(rate) &&
         rule.weight_decay == Decay(0) && rule.epsilon == Epsilon(epsilon);
}

/// The table for one alpha, retyped, with our epsilon; KC is the width of shared keys.
constexpr bool complete_p_table(const auto& p, Exponent alpha) {
  using namespace symbols;
  const Scaling block_rate = pow(m_L, alpha - 1);
  const Scaling block_epsilon = 1 / (m_N * pow(m_L, alpha));
  const auto input = [&](Group g) { return complete_p_row(fans(p, g), 1, 1, 1, 1, 1 / m_N); };
  // The table's m_N in the epsilon of a matrix whose fan-out ratio m_fo differs is √(m_fo·m_N).
  const auto hidden = [&](Group g, const Scaling& in, const Scaling& out) {
    return complete_p_row(bound(p.row(g), in, out), 1 / ratio(in), 1, block_rate / ratio(in),
                          ratio(in), 1 / (sqrt(ratio(out) * m_N) * pow(m_L, alpha)));
  };
  const auto block = [&](const Row& row, double start) {
    return complete_p_vector(row, start, block_rate, block_epsilon);
  };
  const Row bias = p.row(Group::hidden_bias);
  return input(Group::token_embedding) && input(Group::position_embedding) &&
         input(Group::patch_embedding) && hidden_matrices(hidden) &&
         block(fans(p, Group::norm_gain), 1) && block(fans(p, Group::norm_bias), 0) &&
         // Whatever its matrix's fans are, a bias has the same row.
         block(bound(bias, 1, n), 0) && block(bound(bias, n, F), 0) &&
         block(bound(bias, n, KC), 0) &&
         complete_p_vector(fans(p, Group::final_norm_gain), 1, 1, 1 / m_N) &&
         complete_p_vector(fans(p, Group::final_norm_bias), 0, 1, 1 / m_N) &&
         complete_p_row(fans(p, Group::head), 1, 1 / m_N, 1, 1, 1 / m_N);
}

constexpr bool complete_p_model(const ModelRow& m, Exponent alpha) {
  using namespace symbols;
  return m.residual_skip == Multiplier(1) && m.residual_branch == Multiplier(pow(m_L, -alpha)) &&
         m.attention_scale == Multiplier(sqrt(C / m_C) / C) &&
         m.logit_multiplier == Multiplier(1) && m.tied_logit_multiplier == Multiplier(1 / m_N);
}

static_assert(complete_p_table(CompleteP{}, 1));
static_assert(complete_p_model(CompleteP{}.model(), 1));
static_assert(complete_p_table(CompleteP{.alpha = 0.5}, {1, 2}));
static_assert(complete_p_model(CompleteP{.alpha = 0.5}.model(), {1, 2}));
static_assert(complete_p_table(CompleteP{.alpha = 0.75}, {3, 4}));
static_assert(complete_p_model(CompleteP{.alpha = 0.75}.model(), {3, 4}));
static_assert(complete_p_table(CompleteP{.alpha = 0.6}, {3, 5}));
static_assert(complete_p_table(CompleteP{.alpha = 0.7}, {7, 10}));
static_assert(complete_p_table(CompleteP{.alpha = 0.8}, {4, 5}));
static_assert(complete_p_table(CompleteP{.alpha = 0.9}, {9, 10}));

// At alpha = 1 no rate depends on depth: on L, or on its ratio m_L.
static_assert(CompleteP{}.row(Group::query).rate(adamw).scaling.exponent_of(symbols::depth) ==
              Exponent(0));
static_assert(policy::states(CompleteP{}, adamw) && !policy::states(CompleteP{}, sgd));
static_assert(CompleteP::reference == Reference::base);

// Its width part is maximal update, Table 8.
constexpr bool width_part(Group g) {
  using symbols::n;
  const Row mup = bound(MaximalUpdateTable8{}.row(g), n, n);
  const Row cp = bound(CompleteP{}.row(g), n, n);
  return mup.rate(adamw) == cp.rate(adamw) && mup.init_variance == cp.init_variance &&
         mup.multiplier == cp.multiplier;
}
static_assert(width_part(Group::query));
static_assert(width_part(Group::mlp_down));
static_assert(width_part(Group::head));

}  // namespace

// A step multiplies weights by 1 - decay·rate: m_fi · m_L^(α-1)/m_fi, in which the width cancels.
TEST_CASE("CompleteP's shrink per step under an optimizer with the independent form") {
  const double alpha = GENERATE(1.0, 0.5, 0.8);
  const Plan plan =
      make_plan(CompleteP{.alpha = alpha},
                {.model = decoder(), .base = decoder_base(), .decay = DecayForm::independent});
  CHECK(near(plan.at("layer.3.query").weight_decay.value, std::pow(2.5, alpha - 1)));  // 5/2 layers
  CHECK(near(plan.at("head").weight_decay.value, 1));
}
