// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Its compilation is the test: which policies are one rule in several formulations.

#include "scalewise/policy/all.hpp"
#include "scalewise/policy/formulation.hpp"

namespace static_formulations {

using namespace scalewise;

/// Under both optimizers.
constexpr bool one_rule(const auto& a, const auto& b) {
  return equivalent(a, b, sgd) && equivalent(a, b, adamw);
}
constexpr bool same_width(const auto& a, const auto& b) {
  return same_width_scaling(a, b, sgd) && same_width_scaling(a, b, adamw);
}

// Tables 3, 8 and 9 of Tensor Programs V are one rule.
static_assert(one_rule(MaximalUpdateTable3{}, MaximalUpdateTable8{}));
static_assert(one_rule(MaximalUpdateTable3{}, MaximalUpdateTable9{}));
static_assert(one_rule(MaximalUpdateTable8{}, MaximalUpdateTable9{}));
static_assert(equivalent(MaximalUpdate{.table = 9}, MaximalUpdateTable9{}, adamw));

// Meta-principled s = 1 is maximal update up to order-one constants; no other s is.
static_assert(same_width(MetaPrincipled{.s = 1}, MaximalUpdateTable3{}));
static_assert(same_width(MetaPrincipled{.s = 1}, MaximalUpdateTable8{}));
static_assert(same_width(MetaPrincipled{.s = 1}, MaximalUpdateTable9{}));
static_assert(!same_width_scaling(MetaPrincipled{.s = 0.5}, MaximalUpdateTable3{}, sgd));
static_assert(!same_width_scaling(MetaPrincipled{.s = 0}, MaximalUpdateTable3{}, adamw));
static_assert(one_rule(MetaPrincipled{.s = 0}, NeuralTangent{}));

// Other rules are other rules.
static_assert(!equivalent(MaximalUpdateTable8{}, CompleteP{}, adamw));
static_assert(!equivalent(Standard{}, He{}, sgd));
static_assert(!same_width_scaling(Standard{}, MaximalUpdateTable8{}, adamw));
static_assert(!equivalent(DepthMup{}, CompleteP{}, adamw));
static_assert(equivalent(DepthMup{}, CompleteP{.alpha = 0.5}, adamw));

// One cell off is seen: a rate, an epsilon, a decay, a variance.
constexpr Row head = MaximalUpdateTable8{}.row(Group::head);
constexpr Row folded_head = folded(head, adamw);
static_assert(folded_head.multiplier == Multiplier(1));
static_assert(folded_head.init_variance == Variance(1 / (symbols::m_fi * symbols::m_fi)));
static_assert(folded_head.rate(adamw) == Rate(1 / symbols::m_fi));
static_assert(folded_head.epsilon == Epsilon(1));
static_assert(equivalent(head, folded_head, adamw));

constexpr bool changed(auto change) {
  Row other = folded_head;
  change(other);
  return !equivalent(head, other, adamw);
}
static_assert(!changed([](Row&) {}));
static_assert(changed([](Row& r) { r.rates.set(adamw, 1); }));
static_assert(changed([](Row& r) { r.epsilon = 1 / symbols::m_fi; }));
static_assert(changed([](Row& r) { r.weight_decay = symbols::m_fi; }));
static_assert(changed([](Row& r) { r.init_variance = 1 / symbols::m_fi; }));
static_assert(changed([](Row& r) { r.multiplier = 1 / symbols::m_fi; }));

// Coupled decay follows the rate: under Adam by t, under SGD by t².
constexpr Row coupled{.init_variance = 1, .weight_decay = 1, .decay_form = DecayForm::coupled};
static_assert(reformulate(coupled, symbols::n, adamw).weight_decay == Decay(symbols::n));
static_assert(reformulate(coupled, symbols::n, sgd).weight_decay == Decay(symbols::n * symbols::n));
static_assert(policy::shrink_per_step(reformulate(coupled, symbols::n, sgd), sgd) == Scaling(1));

// Independent decay is what shrinks by itself, coupled decay times the rate.
constexpr Row decaying(DecayForm form) {
  return {.init_variance = 1,
          .rates = {{adamw, 1 / symbols::n}},
          .weight_decay = 3,
          .decay_form = form};
}
static_assert(policy::shrink_per_step(decaying(DecayForm::coupled), adamw) == 3 / symbols::n);
static_assert(policy::shrink_per_step(decaying(DecayForm::independent), adamw) == Scaling(3));
static_assert(!equivalent(decaying(DecayForm::coupled), decaying(DecayForm::independent), adamw));

}  // namespace static_formulations
