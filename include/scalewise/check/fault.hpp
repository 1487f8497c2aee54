// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/check/scales.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::check {

/// A part of a rule's table that can be forgotten, or applied in two places at once.
enum class Ingredient {
  output_multiplier,
  head_variance,
  head_rate,
  attention_scale,
  hidden_variance,
  hidden_rate,
  input_rate,
  branch_multiplier,
  all_rates,  // one global rate
  backward_scale,
  epsilon,
  weight_decay,
};

inline constexpr Spelling<Ingredient, 12> ingredient_words{
    {{Ingredient::output_multiplier, "output-multiplier"},
     {Ingredient::head_variance, "head-variance"},
     {Ingredient::head_rate, "head-rate"},
     {Ingredient::attention_scale, "attention-scale"},
     {Ingredient::hidden_variance, "hidden-variance"},
     {Ingredient::hidden_rate, "hidden-rate"},
     {Ingredient::input_rate, "input-rate"},
     {Ingredient::branch_multiplier, "branch-multiplier"},
     {Ingredient::all_rates, "all-rates"},
     {Ingredient::backward_scale, "backward-scale"},
     {Ingredient::epsilon, "epsilon"},
     {Ingredient::weight_decay, "weight-decay"}}};

/// A mistake in applying a rule.
struct Fault {
  Ingredient ingredient = Ingredient::output_multiplier;
  bool doubled = false;  // applied twice; otherwise missing
};

/// "output multiplier missing"
inline std::string to_string(const Fault& fault) {
  std::string text(word(ingredient_words, fault.ingredient));
  for (char& c : text) c = c == '-' ? ' ' : c;
  if (fault.ingredient == Ingredient::all_rates && !fault.doubled) return "one global rate";
  return text + (fault.doubled ? " applied twice" : " missing");
}

namespace detail {

/// A factor that is missing is as it was in the model that the family begins with.
inline void spoil(double& value, double first, bool doubled) {
  value = doubled ? (first == 0 ? value : value * value / first) : first;
}

/// The entry of another plan that has the same name, or else the first of the same group.
inline const Entry* counterpart(const Plan& plan, const Entry& entry) {
  const Entry* found = nullptr;
  for (const Entry& other : plan.entries) {
    if (other.name == entry.name) return &other;
    if (found == nullptr && other.group == entry.group) found = &other;
  }
  return found;
}

}  // namespace detail

/// The plan that a mistake makes of another; `first` is that of the family's smallest model, which
/// every mistake leaves as it is. A backward scale is in no plan: see scaled_gradient().
inline Plan with_fault(Plan plan, const Plan& first, const Fault& fault) {
  const auto spoil = [&](auto& number, const auto& other) {
    detail::spoil(number.value, other.value, fault.doubled);
  };
  using enum Ingredient;
  if (fault.ingredient == output_multiplier) {
    spoil(plan.model.logit_multiplier, first.model.logit_multiplier);
  }
  if (fault.ingredient == attention_scale) {
    spoil(plan.model.attention_scale, first.model.attention_scale);
  }
  if (fault.ingredient == branch_multiplier) {
    for (Residual& r : plan.model.residuals) spoil(r.branch, first.model.residuals.front().branch);
  }
  for (Entry& entry : plan.entries) {
    const Entry* other = detail::counterpart(first, entry);
    if (other == nullptr) continue;
    const Role role = role_of(entry.group);
    const bool rate = fault.ingredient == all_rates ||
                      (fault.ingredient == hidden_rate && role == Role::hidden) ||
                      (fault.ingredient == head_rate && role == Role::output) ||
                      (fault.ingredient == input_rate && role == Role::input);
    const bool variance = (fault.ingredient == hidden_variance && role == Role::hidden) ||
                          (fault.ingredient == head_variance && role == Role::output);
    if (rate) spoil(entry.learning_rate, other->learning_rate);
    if (variance) spoil(entry.init_variance, other->init_variance);
    if (fault.ingredient == epsilon) spoil(entry.epsilon, other->epsilon);
    if (fault.ingredient == weight_decay) spoil(entry.weight_decay, other->weight_decay);
  }
  return plan;
}

/// By how much the fault scales the gradient of every tensor but the head's: as if the output
/// multiplier were left out, or applied twice, in the backward pass alone.
inline double scaled_gradient(const Plan& plan, const Plan& first, const Fault& fault) {
  if (fault.ingredient != Ingredient::backward_scale) return 1;
  const double factor = plan.model.logit_multiplier.value / first.model.logit_multiplier.value;
  return fault.doubled ? factor : 1 / factor;
}

/// Whether a fault changes anything at all: a factor that is the same for all sizes cannot be
/// missed.
inline bool changes(const std::vector<Member>& family, const Fault& fault) {
  const Plan& first = family.front().plan;
  const Plan& last = family.back().plan;
  if (fault.ingredient == Ingredient::backward_scale) {
    return scaled_gradient(last, first, fault) != 1;
  }
  return !(with_fault(last, first, fault) == last);
}

/// Every mistake that would change something in a family of models.
inline std::vector<Fault> possible_faults(const std::vector<Member>& family) {
  std::vector<Fault> all;
  for (const auto& [ingredient, name] : ingredient_words) {
    for (const bool doubled : {false, true}) {
      if (changes(family, {ingredient, doubled})) all.push_back({ingredient, doubled});
    }
  }
  return all;
}

}  // namespace scalewise::check
