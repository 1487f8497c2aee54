// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::inline plan {

/// A factor with the formula that it comes from, and the symbols in it that are not of the whole plan.
struct MovedFactor {
  Number<Kind::multiplier> number{1, "1", "1"};
  std::vector<SymbolValue> where = {};
};

namespace detail {

template <Kind kind>
bool is_one(const Number<kind>& number) {
  return number.value == 1;
}

/// Times a power of a factor: "a" by "b" squared is "(a)·(b)²".
template <Kind kind, Kind other>
void times_power(Number<kind>& number, const Number<other>& factor, int power) {
  if (number.value == 0 || is_one(factor)) return;
  double value = 1;
  for (int i = 0; i < (power < 0 ? -power : power); ++i) value *= factor.value;
  number.value = power < 0 ? number.value / value : number.value * value;
  const bool plain = number.formula == "1";
  if (plain && power == 1) {
    number.formula = factor.formula;
    number.latex = factor.latex;
    return;
  }
  const std::string up = power == 1 ? "" : power == 2 ? "²" : power == -1 ? "⁻¹" : "⁻²";
  const std::string latex_up = power == 1 ? "" : "^{" + std::to_string(power) + "}";
  number.formula = (plain ? "" : "(" + number.formula + ")·") + "(" + factor.formula + ")" + up;
  number.latex = (plain ? "" : "\\left(" + number.latex + "\\right)") + "\\left(" + factor.latex +
                 "\\right)" + latex_up;
}

/// The powers of t in an entry's numbers when its weights W are stored as t W.
/// Equation: std t, mean t; rate t where the optimizer divides the gradient by its size, t² where not;
///           epsilon 1/t; decay so that rate · decay stays, of an l2 penalty 1/t²
struct WeightPowers {
  int rate = 1;
  int decay = 0;
};

inline WeightPowers weight_powers(const Plan& plan, const Entry& entry) {
  const int rate = entry.optimizer.normalization == Normalization::none ? 2 : 1;
  switch (plan.decay) {
    case DecayForm::coupled:
      return {rate, -rate};
    case DecayForm::l2:
      return {rate, -2};
    case DecayForm::independent:
      break;
  }
  return {rate, 0};
}

}  // namespace detail

/// Stores the weights of an entry t times as large, or 1/t with `power` = -1, and leaves its multiplier
/// alone: what the model computes changes, unless the factor on the tensor changes by the inverse.
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Lemma J.1; docs/formulations.md for epsilon and decay
/// Accuracy: exact, so that trajectories agree to rounding.
inline void store_times(const Plan& plan, Entry& entry, const MovedFactor& t, int power = 1) {
  if (t.number.value == 1) return;
  const detail::WeightPowers powers = detail::weight_powers(plan, entry);
  detail::times_power(entry.init_variance, t.number, 2 * power);
  detail::times_power(entry.init_mean, t.number, power);
  detail::times_power(entry.learning_rate, t.number, power * powers.rate);
  if (powers.decay != 0) detail::times_power(entry.weight_decay, t.number, power * powers.decay);
  if (entry.optimizer.has_epsilon) detail::times_power(entry.epsilon, t.number, -power);
  for (const SymbolValue& symbol : t.where) {
    bool known = false;
    for (const SymbolValue& own : entry.where) known = known || own.text == symbol.text;
    if (!known) entry.where.push_back(symbol);
  }
}

}  // namespace scalewise::inline plan
