// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

namespace policy {

/// The powers of t in a tensor's numbers when its weights are stored t times as large and its multiplier is over t.
/// Equation: std t, mean t; rate t where the optimizer divides the gradient by its size, t² where not;
///           epsilon 1/t; decay so that rate · decay stays, of an l2 penalty 1/t²
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Lemma J.1; epsilon and decay are derived in
///           docs/formulations.md.
/// Units:    exponents
struct StoragePowers {
  int init_variance = 2;
  int init_mean = 1;
  int learning_rate = 1;
  int weight_decay = 0;
  int epsilon = -1;
};

/// The powers under an optimizer whose decay has a form.
/// Source:   as StoragePowers.
constexpr StoragePowers storage_powers(const Optimizer& optimizer, DecayForm decay) {
  StoragePowers powers;
  powers.learning_rate = optimizer.normalization == Normalization::none ? 2 : 1;
  if (decay == DecayForm::coupled) powers.weight_decay = -powers.learning_rate;
  if (decay == DecayForm::l2) powers.weight_decay = -2;
  return powers;
}

}  // namespace policy

/// Returns a row with a factor t moved from the weights into the forward multiplier.
/// Equation: multiplier·t, and the weights are stored 1/t as large, as StoragePowers says
/// Source:   as StoragePowers.
/// Accuracy: exact; training trajectories agree to rounding.
/// Requires: the optimizer that the rule will be used with: the result has a rate for no other.
constexpr Row reformulate(Row row, const Scaling& t, const Optimizer& optimizer) {
  const policy::StoragePowers powers = policy::storage_powers(optimizer, row.decay_form);
  row.multiplier = row.multiplier.scaling * t;
  row.init_variance = row.init_variance.scaling / pow(t, powers.init_variance);
  row.init_mean = row.init_mean.scaling / pow(t, powers.init_mean);
  row.rates = {{optimizer, row.rate(optimizer).scaling / pow(t, powers.learning_rate)}};
  row.weight_decay = row.weight_decay.scaling / pow(t, powers.weight_decay);
  row.epsilon = row.epsilon.scaling / pow(t, powers.epsilon);
  return row;
}

/// The row with all of its forward multiplier in the weights, so that forward and backward code
/// need not know of it.
/// Source:   as reformulate().
constexpr Row folded(const Row& row, const Optimizer& optimizer) {
  return reformulate(row, 1 / row.multiplier.scaling, optimizer);
}

namespace policy {

/// The row of a tensor whose initial values are the model's own. They act as they do in the model, so that the
/// multiplier is in the weights.
constexpr Row with_own_values(const Row& row, const Optimizer& optimizer) {
  Row own = folded(row, optimizer);
  own.init_variance = 0;
  own.init_mean = 0;
  own.distribution = Distribution::own;
  return own;
}

/// Decay per step as a factor on the global rate times the global decay, whatever form it is in.
/// Source:   the forms of decay, see docs/formulations.md.
constexpr Scaling shrink_per_step(const Row& row, const Optimizer& optimizer) {
  const Scaling& decay = row.weight_decay.scaling;
  if (decay.is_zero()) return 0;
  return row.decay_form == DecayForm::coupled ? row.rate(optimizer).scaling * decay : decay;
}

}  // namespace policy

/// True when two rows train the same function along the same path: one is the other with a factor
/// moved between weights and multiplier.
/// Equation: reformulate(a, multiplier_b / multiplier_a) = b, exactly, in every cell
/// Differs:  two decays of different form are compared by their shrink per step.
constexpr bool equivalent(const Row& a, const Row& b, const Optimizer& optimizer) {
  const Row moved = reformulate(a, b.multiplier.scaling / a.multiplier.scaling, optimizer);
  return moved.init_variance == b.init_variance && moved.init_mean == b.init_mean &&
         moved.rate(optimizer) == b.rate(optimizer) &&
         (!optimizer.has_epsilon || moved.epsilon == b.epsilon) &&
         policy::shrink_per_step(moved, optimizer) == policy::shrink_per_step(b, optimizer);
}

namespace detail {

/// Whether two rules agree in the groups that both state.
template <class A, class B, class Compare>
constexpr bool for_all_groups(const A& a, const B& b, Compare&& same) {
  for (std::size_t g = 0; g < architecture::group_count; ++g) {
    const auto group = static_cast<Group>(g);
    const Row of_a = policy::row_of(a, group), of_b = policy::row_of(b, group);
    if (of_a.stated && of_b.stated && !same(of_a, of_b, group)) return false;
  }
  return true;
}

}  // namespace detail

/// True when two policies are one rule in two formulations: the rows of every group that both state are equivalent, and
/// so are the residual weights, the attention scale and the logits of a tied head.
template <Policy A, Policy B>
constexpr bool equivalent(const A& a, const B& b, const Optimizer& optimizer) {
  const ModelRow model_a = policy::model_of(a);
  const ModelRow model_b = policy::model_of(b);
  const Scaling moved = substitute(policy::row_of(b, Group::token_embedding).multiplier.scaling /
                                       policy::row_of(a, Group::token_embedding).multiplier.scaling,
                                   symbols::fan_out, symbols::n);
  return detail::for_all_groups(
             a, b,
             [&](const Row& x, const Row& y, Group) { return equivalent(x, y, optimizer); }) &&
         model_a.attention_scale == model_b.attention_scale &&
         model_a.residual_skip == model_b.residual_skip &&
         model_a.residual_branch == model_b.residual_branch &&
         model_a.logit_multiplier == model_b.logit_multiplier &&
         model_a.tied_logit_multiplier.scaling * moved == model_b.tied_logit_multiplier.scaling;
}

namespace policy {

/// Exponent with which a scaling grows when every width grows alike: d_model, d_ff and the number
/// of heads, at fixed head_dim, vocab, patch_dim and classes.
/// Units:    exponent of width.
constexpr Exponent width_exponent(const Scaling& cell, Group group) {
  const Role role = role_of(group);
  const bool writes_width = role != Role::output && role != Role::output_bias;
  const Scaling width = symbols::d_model;
  const Scaling bound =
      substitute(substitute(cell, symbols::fan_in, architecture::reads_width(group) ? width : 1),
                 symbols::fan_out, writes_width ? width : 1);
  Exponent sum;
  for (const Symbol* size :
       {&symbols::d_model, &symbols::d_ff, &symbols::heads, &symbols::kv_heads}) {
    sum = sum + bound.exponent_of(*size);
  }
  return sum;
}

}  // namespace policy

/// True when two rules differ by order-one constants only: equivalent() with every cell replaced by
/// its width_exponent().
constexpr bool same_width_scaling(const Row& a, const Row& b, Group group,
                                  const Optimizer& optimizer) {
  const Row moved = reformulate(a, b.multiplier.scaling / a.multiplier.scaling, optimizer);
  const auto same = [&](const Scaling& x, const Scaling& y) {
    return x.is_zero() == y.is_zero() &&
           policy::width_exponent(x, group) == policy::width_exponent(y, group);
  };
  return same(moved.init_variance.scaling, b.init_variance.scaling) &&
         same(moved.init_mean.scaling, b.init_mean.scaling) &&
         same(moved.rate(optimizer).scaling, b.rate(optimizer).scaling) &&
         (!optimizer.has_epsilon || same(moved.epsilon.scaling, b.epsilon.scaling));
}

/// same_width_scaling() for every group, the attention scale and the logits of a tied head.
template <Policy A, Policy B>
constexpr bool same_width_scaling(const A& a, const B& b, const Optimizer& optimizer) {
  const auto exponent_of = [](const Multiplier& m) {
    return policy::width_exponent(m.scaling, Group::head);
  };
  const Exponent moved =
      policy::width_exponent(policy::row_of(b, Group::token_embedding).multiplier.scaling /
                                 policy::row_of(a, Group::token_embedding).multiplier.scaling,
                             Group::token_embedding);
  return detail::for_all_groups(a, b,
                                [&](const Row& x, const Row& y, Group group) {
                                  return same_width_scaling(x, y, group, optimizer);
                                }) &&
         exponent_of(policy::model_of(a).attention_scale) ==
             exponent_of(policy::model_of(b).attention_scale) &&
         exponent_of(policy::model_of(a).tied_logit_multiplier) + moved ==
             exponent_of(policy::model_of(b).tied_logit_multiplier);
}

}  // namespace scalewise
