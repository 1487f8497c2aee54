// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/maximal_update.hpp"

#include <map>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {
namespace maximal_update_table {

using namespace scalewise::symbols;

// Tables 3, 8 and 9 of arXiv:2203.03466v2, cell by cell, retyped. fi and fo count as ratios to the
// base, each matrix with its own.
constexpr Scaling m_F = ratio(F);

/// Decay does not depend on width in the independent form (section B.3).
constexpr bool row(const Row& rule, const Scaling& variance, const Scaling& multiplier,
                   const Scaling& by_sgd, const Scaling& adam, const Scaling& epsilon) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(multiplier) &&
         rule.rate(sgd) == Rate(by_sgd) && rule.rate(adamw) == Rate(adam) &&
         rule.epsilon == Epsilon(epsilon) && rule.weight_decay == Decay(1) &&
         rule.decay_form == DecayForm::independent && rule.init_mean == Mean(0) &&
         !rule.source.empty();
}

/// A gain of the input column: acts as one, whatever its multiplier.
constexpr bool gain(const Row& rule, const Scaling& multiplier, const Scaling& by_sgd,
                    const Scaling& adam, const Scaling& epsilon) {
  return rule.init_variance == Variance(0) && rule.multiplier == Multiplier(multiplier) &&
         rule.init_mean == Mean(1 / multiplier) && rule.rate(sgd) == Rate(by_sgd) &&
         rule.rate(adamw) == Rate(adam) && rule.epsilon == Epsilon(epsilon);
}

constexpr bool zero(const Row& rule) {
  return rule.init_variance == Variance(0) && rule.init_mean == Mean(0);
}

// fans(p, group) is the rule's row of a group with its usual fan-in and fan-out put in, such as n and F
// for mlp_up; bound(row, in, out) puts in others.
constexpr Row head(const auto& p) { return fans(p, Group::head); }

/// The hidden column is the same in all three tables; under SGD fo/fi where they grow apart.
/// Epsilon: the outputs' gradient comes from the stream's, n entries of 1/n each, through weights of
/// variance 1/fo: a sum of n incoherent terms, √n/(n√fo), which is the text's 1/n where fo is n. Keys and
/// values that n/fo query heads share get that many such sums of weights of variance 1/n: the same.
constexpr bool hidden_column(const auto& p) {
  return hidden_matrices([&](Group g, const Scaling& in, const Scaling& out) {
    return row(bound(p.row(g), in, out), 1 / ratio(in), 1, ratio(out) / ratio(in), 1 / ratio(in),
               1 / sqrt(ratio(out) * m_N));
  });
}

// Each table is typed as "variance | multiplier | SGD rate | Adam rate", each for input; output; hidden.
// Table 3: 1/fi; 1/fi²; 1/fi | 1; 1; 1 | fo; 1/fi; 1 | 1; 1/fi; 1/fi.
// Gradients: embedding and hidden 1/n, head 1.
constexpr MaximalUpdateTable3 t3{};
static_assert(row(fans(t3, Group::token_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(fans(t3, Group::position_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(bound(t3.row(Group::patch_embedding), 1, n), 1, 1, m_N, 1, 1 / m_N));
static_assert(hidden_column(t3));
static_assert(row(head(t3), 1 / (m_N * m_N), 1, 1 / m_N, 1 / m_N, 1));
static_assert(gain(fans(t3, Group::norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(gain(fans(t3, Group::final_norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(zero(fans(t3, Group::hidden_bias)));
static_assert(fans(t3, Group::hidden_bias).rate(sgd) == Rate(m_N));
static_assert(fans(t3, Group::hidden_bias).rate(adamw) == Rate(1));
static_assert(bound(t3.row(Group::hidden_bias), n, F).epsilon == Epsilon(1 / sqrt(m_F * m_N)));
static_assert(t3.model().tied_logit_multiplier == Multiplier(1 / m_N));

// Table 8: 1/fi; 1; 1/fi | 1; 1/fi; 1 | fo; fi; 1 | 1; 1; 1/fi. Gradients 1/n everywhere.
constexpr MaximalUpdateTable8 t8{};
static_assert(row(fans(t8, Group::token_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(fans(t8, Group::position_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(fans(t8, Group::segment_embedding), 1, 1, m_N, 1, 1 / m_N));
static_assert(row(bound(t8.row(Group::patch_embedding), 1, n), 1, 1, m_N, 1, 1 / m_N));
static_assert(hidden_column(t8));
static_assert(row(head(t8), 1, 1 / m_N, m_N, 1, 1 / m_N));
static_assert(gain(fans(t8, Group::norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(gain(fans(t8, Group::final_norm_gain), 1, m_N, 1, 1 / m_N));
static_assert(zero(fans(t8, Group::hidden_bias)));
static_assert(fans(t8, Group::hidden_bias).rate(sgd) == Rate(m_N));
static_assert(fans(t8, Group::hidden_bias).rate(adamw) == Rate(1));
static_assert(fans(t8, Group::hidden_bias).epsilon == Epsilon(1 / m_N));
static_assert(bound(t8.row(Group::hidden_bias), n, F).epsilon == Epsilon(1 / sqrt(m_F * m_N)));
static_assert(t8.model().tied_logit_multiplier == Multiplier(1 / m_N));

// Table 9: 1/fo; 1/fi; 1/fi | √fo; 1/√fi; 1 | 1; 1; 1 | 1/√fo; 1/√fi; 1/fi.
// Gradients: embedding and head 1/√n, hidden 1/n.
constexpr MaximalUpdateTable9 t9{};
constexpr Scaling root_N = sqrt(m_N);
static_assert(row(fans(t9, Group::token_embedding), 1 / m_N, root_N, 1, 1 / root_N, 1 / root_N));
static_assert(row(fans(t9, Group::position_embedding), 1 / m_N, root_N, 1, 1 / root_N, 1 / root_N));
static_assert(hidden_column(t9));
static_assert(row(head(t9), 1 / m_N, 1 / root_N, 1, 1 / root_N, 1 / root_N));
static_assert(gain(fans(t9, Group::norm_gain), root_N, 1, 1 / root_N, 1 / root_N));
static_assert(gain(fans(t9, Group::final_norm_gain), root_N, 1, 1 / root_N, 1 / root_N));
static_assert(zero(fans(t9, Group::hidden_bias)));
static_assert(fans(t9, Group::hidden_bias).rate(sgd) == Rate(1));
static_assert(fans(t9, Group::hidden_bias).rate(adamw) == Rate(1 / root_N));
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
// logits' own, so nothing scales as long as the number of outputs n_out (the vocabulary) stays.
static_assert(fans(t8, Group::head_bias).rate(adamw) == Rate(1));
static_assert(fans(t8, Group::head_bias).rate(sgd) == Rate(ratio(n_out)));
static_assert(fans(t8, Group::head_bias).epsilon == Epsilon(1));

// The formulation by number, Table 8 by default; zero initialization as an option.
static_assert(head(MaximalUpdate{}).multiplier == Multiplier(1 / m_N));
static_assert(head(MaximalUpdate{.table = 3}).init_variance == Variance(1 / (m_N * m_N)));
static_assert(head(MaximalUpdate{.table = 8}).rate(sgd) == Rate(m_N));
static_assert(head(MaximalUpdate{.table = 9}).multiplier == Multiplier(1 / root_N));
static_assert(hidden_column(MaximalUpdate{.table = 3}));
static_assert(hidden_column(MaximalUpdate{}));
static_assert(hidden_column(MaximalUpdate{.table = 9}));
static_assert(model(MaximalUpdate{}.model()));
static_assert(MaximalUpdate{}.model().tied_logit_multiplier == Multiplier(1 / m_N));
static_assert(MaximalUpdate{.table = 9}.model().tied_logit_multiplier == Multiplier(1 / root_N));

constexpr MaximalUpdate zeroed{.zero_head = true, .zero_query = true};
static_assert(zero(head(zeroed)));
static_assert(zero(fans(zeroed, Group::query)));
static_assert(head(zeroed).multiplier == Multiplier(1 / m_N));
static_assert(fans(zeroed, Group::query).rate(adamw) == Rate(1 / m_N));
static_assert(fans(zeroed, Group::key).init_variance == Variance(1 / m_N));
static_assert(MaximalUpdate::reference == Reference::base);
static_assert(MaximalUpdateTable3::reference == Reference::base);
static_assert(MaximalUpdateTable8::reference == Reference::base);
static_assert(MaximalUpdateTable9::reference == Reference::base);

}  // namespace maximal_update_table
}  // namespace

TEST_CASE("maximal update with a tied head, an independent decay and zeros") {
  const double N = 3;  // ratio of the widths, 96 to 32
  Shape target = decoder();
  Shape base = decoder_base();
  target.tied_head = base.tied_head = false;
  const int table = GENERATE(3, 8, 9);
  CAPTURE(table);
  const MaximalUpdate policy{.table = table};
  const Plan adam = make_plan(policy, {.model = target, .base = base});

  SECTION("a tied head is an input weight whose logits are divided") {
    target.tied_head = base.tied_head = true;
    const Plan plan = make_plan(policy, {.model = target, .base = base});
    CHECK(plan.of(Group::head).empty());
    CHECK(near(plan.model.logit_multiplier.value, table == 9 ? 1 / std::sqrt(N) : 1 / N));
    CHECK(near(plan.at("token_embedding").init_variance.value, table == 9 ? 1 / N : 1));
  }
  SECTION("decay in the independent form does not depend on width") {
    for (const Entry& entry :
         make_plan(policy, {.model = target, .base = base, .decay = DecayForm::independent})
             .entries) {
      INFO(entry.name);
      CHECK(entry.weight_decay.value == 1);
    }
  }
  SECTION("zero initialization") {
    const MaximalUpdate zero{.table = table, .zero_head = true, .zero_query = true};
    const Plan plan = make_plan(zero, {.model = target, .base = base});
    CHECK(plan.at("head").init_variance.value == 0);
    CHECK(plan.at("layer.1.query").init_variance.value == 0);
    CHECK(near(plan.at("layer.1.key").init_variance.value, 1 / N));
    CHECK(near(plan.at("head").learning_rate.value, adam.at("head").learning_rate.value));
  }
}

TEST_CASE("Epsilon of shared heads that stay as many while the width grows") {
  // llama-3-70b over llama-3-8b: n and d_ff double, and so do the query heads that share each of 8 key
  // heads, while fo, kv_heads * head_dim, stays 1024: 1/√(fo·m_N) is 1/√2.
  const Plan plan = make_plan(
      MaximalUpdate{}, {.model = preset_shape("llama-3-70b"), .base = preset_shape("llama-3-8b")});
  for (const char* name : {"key", "value"}) {
    CHECK(near(plan.at(std::string("layer.0.") + name).epsilon.value, 1 / std::sqrt(2.0)));
  }
  CHECK(near(plan.at("layer.0.query").epsilon.value, 0.5));
  CHECK(near(plan.at("layer.0.mlp_up").epsilon.value, 0.5));
}

TEST_CASE("the legend has the size or the ratio of every letter") {
  const Plan plan = make_plan(MaximalUpdate{}, {.model = decoder(), .base = decoder_base()});
  std::map<std::string, double> values;
  for (const plan::SymbolValue& symbol : plan.symbols) values[symbol.text] = symbol.value;
  // Of the symbols in some formula of the plan: n, F (d_ff), H (heads), K (kv_heads), C (head_dim), over
  // those of the base: 96/32, 200/80, 6/4, 2/2 and 24/8.
  const std::map<std::string, double> expected{{"C", 24},    {"m_N", 3}, {"m_F", 2.5},
                                               {"m_H", 1.5}, {"m_K", 1}, {"m_C", 3}};
  CHECK(values == expected);
}
