// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/policy/meta_principled.hpp"

#include "support/catch.hpp"
#include "support/table_rows.hpp"

using namespace scalewise;
using namespace scalewise::symbols;
using namespace scalewise::test;

namespace {

// The table of neural-tangent scaling, arXiv:2304.02034v1, for any s: non-head rates times n^s
// (SGD) or n^(s/2) (AdamW), head 1/n^(1+s).
constexpr bool family(double number) {
  const MetaPrincipled policy{.s = number};
  const Exponent s = exponent(number);
  const Scaling up = pow(n, s);
  const Scaling half = pow(n, s * Exponent(1, 2));
  const auto mp = [&](Group g) { return fans(policy, g); };
  const auto attention = [&](Group g) { return cells(mp(g), 1 / n, up / n, half / (n * sqrt(n))); };
  return cells(mp(Group::patch_embedding), 1 / n_patch, up / n_patch, half / (n_patch * sqrt(n))) &&
         cells(mp(Group::token_embedding), 1, up, half / sqrt(n)) &&
         cells(mp(Group::position_embedding), 1, up, half / sqrt(n)) && attention(Group::query) &&
         attention(Group::key) && attention(Group::value) && attention(Group::attention_output) &&
         cells(mp(Group::mlp_up), 1 / n, up / n, half / (n * sqrt(M * n))) &&
         cells(mp(Group::mlp_down), 1 / (M * n), up / (M * n), half / (M * n * sqrt(n))) &&
         cells(mp(Group::head), 1 / (n * pow(n, s)), 1 / n, 1 / (n * sqrt(n_out))) &&
         cells(mp(Group::head_bias), 0, 1, 1 / sqrt(n_out), 0) &&
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
static_assert(fans(MetaPrincipled{.s = 0}, Group::mlp_up).rate(adamw) ==
              fans(NeuralTangent{}, Group::mlp_up).rate(adamw));
static_assert(fans(MetaPrincipled{.s = 1}, Group::head).init_variance == Variance(1 / (n * n)));
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).rate(sgd) == Rate(1));
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).rate(adamw) == Rate(1 / n));
static_assert(MetaPrincipled{.s = 1}.model().tied_logit_multiplier == Multiplier(1 / n));

// The factor comes from the head's gradient (footnote 26), so it is n^s for every fan-out.
constexpr Row mp(double s, Group g, const Scaling& in, const Scaling& out) {
  return bound(MetaPrincipled{.s = s}.row(g), in, out);
}
static_assert(mp(0, Group::hidden_bias, n, F).rate(sgd) == Rate(1));
static_assert(mp(0, Group::hidden_bias, n, F).rate(adamw) == Rate(1 / sqrt(F)));
static_assert(mp(1, Group::hidden_bias, n, F).rate(sgd) == Rate(n));
static_assert(mp(1, Group::hidden_bias, n, F).rate(adamw) == Rate(sqrt(n) / sqrt(F)));
static_assert(mp(1, Group::hidden_bias, n, F).epsilon == Epsilon(1 / sqrt(n * F)));

// From head variance n^-(1+s) a hidden gradient is n^(-(1+s)/2).
static_assert(fans(MetaPrincipled{.s = 1}, Group::query).epsilon == Epsilon(1 / n));
static_assert(fans(MetaPrincipled{.s = 0.5}, Group::query).epsilon == Epsilon(pow(n, {-3, 4})));

// Heads that are not as wide as the model, or shared.
static_assert(mp(1, Group::query, n, HC).rate(adamw) == Rate(sqrt(n) / (n * sqrt(HC))));
static_assert(mp(1, Group::query, n, HC).epsilon == Epsilon(1 / sqrt(n * HC)));
static_assert(mp(0.5, Group::key, n, KC).rate(adamw) == Rate(pow(n, {-3, 4}) / sqrt(KC)));
static_assert(mp(1, Group::value, n, KC).rate(adamw) == Rate(sqrt(n) / (n * sqrt(KC))));
static_assert(mp(1, Group::value, n, KC).epsilon == Epsilon(1 / sqrt(n * KC)));

}  // namespace
