// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Neural-tangent and meta-principled scaling, cell by cell, retyped from arXiv:2304.02034v1:
// variances (1.25)-(1.34), SGD (1.99)-(1.107), AdamW (1.108)-(1.116), footnotes 8 and 26.
// Compiling this file is the test.

#include "scalewise/policy/all.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::symbols;

/// The row of a group with the fans of its matrix put in, so that 1/fi and 1/n are the same cell.
constexpr Row bound(Row rule, const Scaling& in, const Scaling& out) {
  const auto put = [&](Scaling& cell) {
    cell = substitute(substitute(cell, Axis::fan_in, in), Axis::fan_out, out);
  };
  put(rule.init_variance.scaling);
  put(rule.multiplier.scaling);
  put(rule.sgd_rate.scaling);
  put(rule.adamw_rate.scaling);
  put(rule.weight_decay.scaling);
  put(rule.epsilon.scaling);
  return rule;
}

constexpr Row fans(const auto& policy, Group g) {
  switch (g) {
    case Group::patch_embedding:
    case Group::patch_bias:
      return bound(policy.row(g), n_patch, n);
    case Group::mlp_up:
    case Group::mlp_gate:
      return bound(policy.row(g), n, F);
    case Group::mlp_down:
      return bound(policy.row(g), F, n);
    case Group::head:
    case Group::head_bias:
      return bound(policy.row(g), n, n_out);
    case Group::query:
    case Group::key:
    case Group::value:
    case Group::attention_output:
      return bound(policy.row(g), n, n);
    default:
      return bound(policy.row(g), 1, n);
  }
}

/// Decay is (1 - eta wd) with the global eta, (1.94): factor one in the independent form. Adam's
/// epsilon follows the gradient, whose size is the ratio of the two rates.
constexpr bool row(const Row& rule, const Scaling& variance, const Scaling& sgd,
                   const Scaling& adamw, double decay = 1) {
  return rule.init_variance == Variance(variance) && rule.multiplier == Multiplier(1) &&
         rule.init_mean == Mean(0) && rule.sgd_rate == Rate(sgd) &&
         rule.adamw_rate == Rate(adamw) && rule.weight_decay == Decay(decay) &&
         rule.decay_form == DecayForm::independent && rule.epsilon == Epsilon(adamw / sgd) &&
         !rule.source.empty();
}

constexpr Row nt(Group g) { return fans(NeuralTangent{}, g); }

static_assert(row(nt(Group::patch_embedding), 1 / n_patch, 1 / n_patch, 1 / (n_patch * sqrt(n))));
static_assert(row(nt(Group::token_embedding), 1, 1, 1 / sqrt(n)));
static_assert(row(nt(Group::position_embedding), 1, 1, 1 / sqrt(n)));
static_assert(row(nt(Group::query), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(row(nt(Group::key), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(row(nt(Group::value), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(row(nt(Group::attention_output), 1 / n, 1 / n, 1 / (n * sqrt(n))));
static_assert(row(nt(Group::mlp_up), 1 / n, 1 / n, 1 / (n * sqrt(M * n))));
static_assert(row(nt(Group::mlp_gate), 1 / n, 1 / n, 1 / (n * sqrt(M * n))));
static_assert(row(nt(Group::mlp_down), 1 / (M * n), 1 / (M * n), 1 / (M * n * sqrt(n))));
static_assert(row(nt(Group::head), 1 / n, 1 / n, 1 / (n * sqrt(n_out))));
// The head's bias is not decayed (section II 1 D).
static_assert(row(nt(Group::head_bias), 0, 1, 1 / sqrt(n_out), 0));

// Heads that are not as wide as the model, or shared: the gradient of query, key and value is
// |g| = √(norm²/count) in (1.95), which is 1/√fan-out where (1.110)-(1.112) have 1/√n.
constexpr Scaling HC = Scaling(Axis::heads) * C;
constexpr Scaling KC = Scaling(Axis::kv_heads) * C;
constexpr Row wide(const auto& policy, Group g) {
  const bool grouped = g == Group::key || g == Group::value;
  return g == Group::attention_output ? bound(policy.row(g), HC, n)
                                      : bound(policy.row(g), n, grouped ? KC : HC);
}
static_assert(row(wide(NeuralTangent{}, Group::query), 1 / n, 1 / n, 1 / (n * sqrt(HC))));
static_assert(row(wide(NeuralTangent{}, Group::key), 1 / n, 1 / n, 1 / (n * sqrt(KC))));
static_assert(row(wide(NeuralTangent{}, Group::value), 1 / n, 1 / n, 1 / (n * sqrt(KC))));
static_assert(row(wide(NeuralTangent{}, Group::attention_output), 1 / HC, 1 / HC,
                  1 / (HC * sqrt(n))));
static_assert(wide(MetaPrincipled{.s = 1}, Group::query).adamw_rate ==
              Rate(sqrt(n) / (n * sqrt(HC))));
static_assert(wide(MetaPrincipled{.s = 1}, Group::query).epsilon == Epsilon(1 / sqrt(n * HC)));
static_assert(wide(MetaPrincipled{.s = 0.5}, Group::key).adamw_rate ==
              Rate(pow(n, {-3, 4}) / sqrt(KC)));
static_assert(wide(MetaPrincipled{.s = 1}, Group::value).adamw_rate ==
              Rate(sqrt(n) / (n * sqrt(KC))));
static_assert(wide(MetaPrincipled{.s = 1}, Group::value).epsilon == Epsilon(1 / sqrt(n * KC)));

// Tensors that the paper's models lack: a gain or bias of fan-out n moves like (1.100).
static_assert(nt(Group::norm_gain).init_mean == Mean(1));
static_assert(nt(Group::norm_gain).init_variance == Variance(0));
static_assert(nt(Group::norm_gain).sgd_rate == Rate(1));
static_assert(nt(Group::norm_gain).adamw_rate == Rate(1 / sqrt(n)));
static_assert(nt(Group::final_norm_gain).init_mean == Mean(1));
static_assert(nt(Group::hidden_bias).init_variance == Variance(0));
static_assert(nt(Group::hidden_bias).adamw_rate == Rate(1 / sqrt(n)));

static_assert(NeuralTangent{}.model().attention_scale == Multiplier(1 / sqrt(C)));
static_assert(NeuralTangent{}.model().logit_multiplier == Multiplier(1));
static_assert(NeuralTangent{}.model().tied_logit_multiplier == Multiplier(1 / sqrt(n)));
static_assert(NeuralTangent{}.model().residual_skip == Multiplier(1));
static_assert(NeuralTangent{}.model().residual_branch == Multiplier(1));
static_assert(NeuralTangent::reference == Reference::absolute);

// The experiments drop the factor of M from the two MLP AdamW rates, and from nothing else.
constexpr Row without_m(Group g) { return fans(NeuralTangent{.mlp_ratio_in_rates = false}, g); }
static_assert(without_m(Group::mlp_up).adamw_rate == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_gate).adamw_rate == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_down).adamw_rate == Rate(1 / (n * sqrt(n))));
static_assert(without_m(Group::mlp_up).sgd_rate == Rate(1 / n));
static_assert(without_m(Group::mlp_down).sgd_rate == Rate(1 / (M * n)));
static_assert(without_m(Group::mlp_down).init_variance == Variance(1 / (M * n)));
static_assert(without_m(Group::query).adamw_rate == Rate(1 / (n * sqrt(n))));

// Order-one constants multiply their own column of their own group.
constexpr Row with_constants(Group g) {
  NeuralTangent policy;
  policy.init_constant[Group::query] = 0.5;
  policy.rate_constant[Group::query] = 3;
  return fans(policy, g);
}
static_assert(with_constants(Group::query).init_variance == Variance(0.5 / n));
static_assert(with_constants(Group::query).sgd_rate == Rate(3 / n));
static_assert(with_constants(Group::query).adamw_rate == Rate(3 / (n * sqrt(n))));
static_assert(with_constants(Group::key).init_variance == Variance(1 / n));
static_assert(with_constants(Group::key).adamw_rate == Rate(1 / (n * sqrt(n))));

/// The same table for any s: non-head rates times n^s (SGD) or n^(s/2) (AdamW), head 1/n^(1+s).
constexpr bool family(double number) {
  const MetaPrincipled policy{.s = number};
  const Exponent s = exponent(number);
  const Scaling up = pow(n, s);
  const Scaling half = pow(n, s * Exponent(1, 2));
  const auto mp = [&](Group g) { return fans(policy, g); };
  const auto attention = [&](Group g) { return row(mp(g), 1 / n, up / n, half / (n * sqrt(n))); };
  const Row head = mp(Group::head);
  const Row bias = mp(Group::head_bias);
  return row(mp(Group::patch_embedding), 1 / n_patch, up / n_patch, half / (n_patch * sqrt(n))) &&
         row(mp(Group::token_embedding), 1, up, half / sqrt(n)) &&
         row(mp(Group::position_embedding), 1, up, half / sqrt(n)) && attention(Group::query) &&
         attention(Group::key) && attention(Group::value) && attention(Group::attention_output) &&
         row(mp(Group::mlp_up), 1 / n, up / n, half / (n * sqrt(M * n))) &&
         row(mp(Group::mlp_down), 1 / (M * n), up / (M * n), half / (M * n * sqrt(n))) &&
         row(head, 1 / (n * pow(n, s)), 1 / n, 1 / (n * sqrt(n_out))) &&
         row(bias, 0, 1, 1 / sqrt(n_out), 0) &&
         policy.model().attention_scale == Multiplier(1 / sqrt(C)) &&
         policy.model().logit_multiplier == Multiplier(1) &&
         policy.model().tied_logit_multiplier == Multiplier(1 / (sqrt(n) * half));
}
static_assert(family(0));
static_assert(family(0.25));
static_assert(family(0.3));
static_assert(family(0.5));
static_assert(family(1));
static_assert(family(0.1) && family(0.2) && family(0.7) && family(0.8) && family(0.9));
static_assert(family(1.0 / 3) && family(2.0 / 3));

// s = 0 is neural tangent; s = 1 has the head variance 1/n² and rates of order one in n under SGD.
static_assert(fans(MetaPrincipled{.s = 0}, Group::mlp_up).adamw_rate ==
              nt(Group::mlp_up).adamw_rate);
static_assert(fans(MetaPrincipled{.s = 1}, Group::head).init_variance == Variance(1 / (n * n)));
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).sgd_rate == Rate(1));
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).adamw_rate == Rate(1 / n));
static_assert(MetaPrincipled{.s = 1}.model().tied_logit_multiplier == Multiplier(1 / n));

// The factor comes from the head's gradient (footnote 26), so it is n^s for every fan-out.
constexpr Row up_bias(double s) {
  return bound(MetaPrincipled{.s = s}.row(Group::hidden_bias), n, F);
}
static_assert(up_bias(0).sgd_rate == Rate(1));
static_assert(up_bias(0).adamw_rate == Rate(1 / sqrt(F)));
static_assert(up_bias(1).sgd_rate == Rate(n));
static_assert(up_bias(1).adamw_rate == Rate(sqrt(n) / sqrt(F)));
static_assert(up_bias(1).epsilon == Epsilon(1 / sqrt(n * F)));

// From head variance n^-(1+s) a hidden gradient is n^(-(1+s)/2).
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).epsilon == Epsilon(1 / n));
static_assert(fans(MetaPrincipled{.s = 0.5}, Group::query).epsilon == Epsilon(pow(n, {-3, 4})));

}  // namespace
