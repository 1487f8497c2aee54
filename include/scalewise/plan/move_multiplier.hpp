// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/architecture/values.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/formulation.hpp"

namespace scalewise {

namespace plan {

/// A factor, and the symbols in it that are not of the whole plan.
struct MovedFactor {
  Number<Kind::multiplier> number{1, 1};
  std::vector<SymbolValue> where = {};
};

}  // namespace plan

namespace detail {

template <Kind kind>
bool is_one(const Number<kind>& number) {
  return number.value == 1;
}

/// Multiplies a number by a power of a factor.
template <Kind kind, Kind other>
void times_power(Number<kind>& number, const Number<other>& factor, int power) {
  if (power == 0) return;
  double value = 1;
  for (int i = 0; i < (power < 0 ? -power : power); ++i) value *= factor.value;
  if (number.value != 0) number.value = power < 0 ? number.value / value : number.value * value;
  number.scaling = number.scaling * pow(factor.scaling, power);
}

/// Multiplies a tensor's multiplier, and those at the ends of the model that contain it.
inline void times_multiplier(Plan& plan, Entry& entry, const Number<Kind::multiplier>& factor) {
  times_power(entry.multiplier, factor, 1);
  if (plan::is_extra(plan, entry)) return;
  if (entry.group == Group::token_embedding || entry.group == Group::patch_embedding)
    times_power(plan.model.embedding_multiplier, factor, 1);
  if (entry.group == Group::head) times_power(plan.model.logit_multiplier, factor, 1);
}

/// Adds the symbols of a scaling to the list of a plan.
inline void list_symbols(Plan& plan, const Scaling& scaling) {
  const architecture::Values at = sizes_of(plan, last_stack(plan.shape));
  for (const scaling::Factor& factor : scaling.factors()) {
    if (!factor.is_integer()) list_once(plan.symbols, symbol_value(factor, at));
  }
}

}  // namespace detail

namespace plan {

/// Stores the weights of an entry t times as large, or 1/t with `power` = -1, and leaves its multiplier
/// alone: what the model computes changes, unless the factor on the tensor changes by the inverse.
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Lemma J.1; docs/formulations.md for epsilon and decay
/// Accuracy: exact, so that trajectories agree to rounding.
inline void store_times(const Plan& plan, Entry& entry, const MovedFactor& t, int power = 1) {
  if (t.number.value == 1) return;
  const policy::StoragePowers powers = policy::storage_powers(entry.optimizer, plan.decay);
  detail::times_power(entry.init_variance, t.number, power * powers.init_variance);
  detail::times_power(entry.init_mean, t.number, power * powers.init_mean);
  detail::times_power(entry.learning_rate, t.number, power * powers.learning_rate);
  detail::times_power(entry.weight_decay, t.number, power * powers.weight_decay);
  if (entry.optimizer.has_epsilon)
    detail::times_power(entry.epsilon, t.number, power * powers.epsilon);
  for (const SymbolValue& symbol : t.where) {
    detail::list_once(entry.where, symbol);
  }
}

}  // namespace plan

}  // namespace scalewise
