// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
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
  input_variance,
  branch_multiplier,
  embedding_multiplier,
  router_variance,
  router_rate,
  router_row,     // missing: the router has the row of hidden matrices
  expert_factor,  // 1/k of the output of each of k active experts
  all_rates,      // one global rate
  backward_scale,
  epsilon,
  weight_decay,
};

inline constexpr messages::Spelling<Ingredient, 18> ingredient_words{
    {{Ingredient::output_multiplier, "output-multiplier"},
     {Ingredient::head_variance, "head-variance"},
     {Ingredient::head_rate, "head-rate"},
     {Ingredient::attention_scale, "attention-scale"},
     {Ingredient::hidden_variance, "hidden-variance"},
     {Ingredient::hidden_rate, "hidden-rate"},
     {Ingredient::input_rate, "input-rate"},
     {Ingredient::input_variance, "input-variance"},
     {Ingredient::branch_multiplier, "branch-multiplier"},
     {Ingredient::embedding_multiplier, "embedding-multiplier"},
     {Ingredient::router_variance, "router-variance"},
     {Ingredient::router_rate, "router-rate"},
     {Ingredient::router_row, "router-row"},
     {Ingredient::expert_factor, "expert-factor"},
     {Ingredient::all_rates, "all-rates"},
     {Ingredient::backward_scale, "backward-scale"},
     {Ingredient::epsilon, "epsilon"},
     {Ingredient::weight_decay, "weight-decay"}}};

/// A mistake in applying a rule.
struct Fault {
  Ingredient ingredient = Ingredient::output_multiplier;
  bool doubled = false;  // applied twice; otherwise missing
  double off = 0;        // not 0: neither, but its exponent (of a standard deviation) is off
};

/// "output multiplier missing", "exponent of the hidden rate off by +0.10".
inline std::string to_string(const Fault& fault) {
  std::string text(word(ingredient_words, fault.ingredient));
  for (char& c : text) c = c == '-' ? ' ' : c;
  const bool all = fault.ingredient == Ingredient::all_rates;
  if (fault.off != 0)
    return fmt::format("exponent of {}{} off by {:+.2f}", all ? "" : "the ", text, fault.off);
  if (all && !fault.doubled) return "one global rate";
  if (fault.ingredient == Ingredient::router_row) return "router as a hidden matrix";
  return text + (fault.doubled ? " applied twice" : " missing");
}

namespace detail {

inline bool spoils_rate(Ingredient ingredient, Group group) {
  using enum Ingredient;
  return ingredient == all_rates || (ingredient == hidden_rate && role_of(group) == Role::hidden) ||
         (ingredient == head_rate && group == Group::head) ||
         (ingredient == router_rate && group == Group::router) ||
         (ingredient == input_rate && role_of(group) == Role::input);
}

inline bool spoils_variance(Ingredient ingredient, Group group) {
  using enum Ingredient;
  return (ingredient == hidden_variance && role_of(group) == Role::hidden) ||
         (ingredient == head_variance && group == Group::head) ||
         (ingredient == router_variance && group == Group::router) ||
         (ingredient == input_variance && role_of(group) == Role::input);
}

/// Whether a mistake makes the router a hidden matrix: that can be made once, and in no part.
inline bool makes_router_hidden(const Fault& fault) {
  return fault.ingredient == Ingredient::router_row && !fault.doubled && fault.off == 0;
}

/// The tables that the embedding's multiplier multiplies.
inline bool is_input_table(Group group) {
  return group == Group::token_embedding || group == Group::patch_embedding;
}

/// Whether a mistake does nothing: variances where matrices are normalized before they are used.
inline bool is_harmless(Ingredient ingredient, Blocks blocks) {
  using enum Ingredient;
  return blocks == Blocks::normalized &&
         (ingredient == hidden_variance || ingredient == head_variance ||
          ingredient == input_variance);
}

/// A factor that is missing is as it was in the model that the family begins with.
inline void spoil(double& value, double first, bool doubled) {
  if (value == first) return;  // no factor; its square over itself would be one by rounding only
  value = doubled ? (first == 0 ? value : value * value / first) : first;
}

/// The entry of another plan that has the same name, or else that of its first layer.
inline const Entry* counterpart(const Plan& plan, const Entry& entry) {
  const std::string first = scalewise::detail::name_in_first_layer(plan, entry);
  const Entry* found = nullptr;
  for (const Entry& other : plan.entries) {
    if (other.name == entry.name) return &other;
    if (other.name == first) found = &other;
  }
  return found;
}

inline const Entry* first_of(const Plan& plan, Group group) {
  for (const Entry& entry : plan::entries_of_shape(plan)) {
    if (entry.group == group) return &entry;
  }
  return nullptr;
}

/// The factor of the scores that a fold has put into queries, over that of another plan; otherwise 1.
inline double query_factor(const Plan& plan, const Plan& first) {
  const auto ratio = [](const Plan& p, double Entry::*field) {
    return first_of(p, Group::query)->*field / (first_of(p, Group::key)->*field);
  };
  const auto squares = [](const Plan& p) {
    return first_of(p, Group::query)->init_variance.value /
           first_of(p, Group::key)->init_variance.value;
  };
  for (const Plan* p : {&plan, &first}) {
    if (first_of(*p, Group::query) == nullptr || first_of(*p, Group::key) == nullptr) return 1;
  }
  if (ratio(plan, &Entry::fan_out) != ratio(first, &Entry::fan_out)) return 1;
  const double square = squares(plan) / squares(first);
  const bool moved = square > 0 && std::isfinite(square) && std::abs(square - 1) > 1e-12;
  return moved ? std::sqrt(square) : 1;
}

/// The multiplier of the logits that a fold has put into the final norm, over that of another plan;
/// otherwise 1.
inline double final_norm_factor(const Plan& plan, const Plan& first) {
  const Entry* gain = first_of(plan, Group::final_norm_gain);
  const Entry* other = first_of(first, Group::final_norm_gain);
  if (gain == nullptr || other == nullptr || other->init_mean.value == 0) return 1;
  return gain->init_mean.value / other->init_mean.value;
}

/// Makes a tensor's numbers `by` times as large, with the rate that moves them alike.
inline void enlarge(Entry& entry, double by) {
  entry.init_mean.value *= by;
  entry.init_variance.value *= by * by;
  entry.learning_rate.value *=
      entry.optimizer.normalization == policy::Normalization::none ? by * by : by;
}

/// The row of hidden matrices for a router, given that of another model.
/// Equation: variance and rate 1/fi, multiplier 1
inline void make_hidden(Entry& router, const Entry& other) {
  const double by = other.fan_in / router.fan_in;
  router.init_variance.value = by * other.init_variance.value;
  router.learning_rate.value = by * other.learning_rate.value;
  router.multiplier.value = other.multiplier.value;
}

/// By how much the output of experts is wrong where their mean is taken by another power of their number.
inline double expert_factor(const Shape& shape, const Shape& first, const Fault& fault,
                            double off) {
  if (fault.ingredient != Ingredient::expert_factor || first.experts_per_token == 0) return 1;
  if (fault.off != 0) return off;
  const double more =
      static_cast<double>(shape.experts_per_token) / static_cast<double>(first.experts_per_token);
  return fault.doubled ? 1 / more : more;
}

/// Spoils a multiplier that a fold has put into weights.
/// Returns:  whether there is one.
inline bool spoil_folded(Plan& plan, const Plan& first, const Fault& fault, double factor) {
  const bool scores = fault.ingredient == Ingredient::attention_scale;
  const bool logits = fault.ingredient == Ingredient::output_multiplier;
  const double t = scores ? query_factor(plan, first) : logits ? final_norm_factor(plan, first) : 1;
  if (t == 1) return false;
  for (Entry& entry : plan::entries_of_shape(plan)) {
    const bool holds =
        scores ? entry.group == Group::query : role_of(entry.group) == Role::final_vector;
    if (holds) enlarge(entry, fault.off != 0 ? factor : fault.doubled ? t : 1 / t);
  }
  return true;
}

}  // namespace detail

/// The plan that a mistake makes of another; `first` is that of the family's smallest model, which
/// every mistake leaves as it is. A backward scale is in no plan: see scaled_gradient().
/// `ratio`: of the sizes of the two.
inline Plan with_fault(Plan plan, const Plan& first, const Fault& fault, double ratio) {
  const double factor = std::pow(ratio, fault.off);
  const auto spoil = [&](auto& number, const auto& other, double off) {
    if (fault.off != 0) {
      number.value *= off;
    } else {
      detail::spoil(number.value, other.value, fault.doubled);
    }
  };
  using enum Ingredient;
  const bool folded = detail::spoil_folded(plan, first, fault, factor);
  if (fault.ingredient == output_multiplier && !folded) {
    spoil(plan.model.logit_multiplier, first.model.logit_multiplier, factor);
  }
  if (fault.ingredient == attention_scale && !folded) {
    spoil(plan.model.attention_scale, first.model.attention_scale, factor);
  }
  if (fault.ingredient == embedding_multiplier) {
    spoil(plan.model.embedding_multiplier, first.model.embedding_multiplier, factor);
  }
  if (fault.ingredient == branch_multiplier) {
    for (Residual& r : plan.model.residuals) {
      spoil(r.branch, first.model.residuals.front().branch, factor);
    }
  }
  for (Entry& entry : plan.entries) {
    const Entry* other = detail::counterpart(first, entry);
    if (other == nullptr) continue;
    if (entry.group == Group::expert_down) {
      entry.multiplier.value *= detail::expert_factor(plan.shape, first.shape, fault, factor);
    }
    if (entry.group == Group::router && detail::makes_router_hidden(fault)) {
      detail::make_hidden(entry, *other);
    }
    if (fault.ingredient == embedding_multiplier && detail::is_input_table(entry.group)) {
      spoil(entry.multiplier, other->multiplier, factor);
    }
    if (detail::spoils_rate(fault.ingredient, entry.group)) {
      spoil(entry.learning_rate, other->learning_rate, factor);
    }
    if (detail::spoils_variance(fault.ingredient, entry.group)) {
      spoil(entry.init_variance, other->init_variance, factor * factor);
    }
    if (fault.ingredient == epsilon) spoil(entry.epsilon, other->epsilon, factor);
    if (fault.ingredient == weight_decay) spoil(entry.weight_decay, other->weight_decay, factor);
  }
  return plan;
}

/// By how much the fault scales the gradient of every tensor but the head's: as if the output
/// multiplier were left out, or applied twice, in the backward pass alone.
/// Units:    a factor on the gradient
inline double scaled_gradient(const Plan& plan, const Plan& first, const Fault& fault) {
  if (fault.ingredient != Ingredient::backward_scale) return 1;
  const double factor = plan.model.logit_multiplier.value / first.model.logit_multiplier.value;
  return fault.doubled ? factor : 1 / factor;
}

/// The largest over the smallest size.
/// Units:    a ratio of sizes
/// Requires: members, by growing size.
inline double ratio_of(const std::vector<Member>& family) {
  return static_cast<double>(family.back().size) / static_cast<double>(family.front().size);
}

/// The family that a mistake makes of another.
inline std::vector<Member> with_fault(std::vector<Member> family, const Fault& fault) {
  const Member first = family.front();
  for (Member& member : family) {
    member.plan = with_fault(std::move(member.plan), first.plan, fault,
                             static_cast<double>(member.size) / static_cast<double>(first.size));
  }
  return family;
}

/// Whether a fault changes anything at all: a factor that is the same for all sizes cannot be
/// missed.
inline bool changes(const std::vector<Member>& family, const Fault& fault) {
  const Plan& first = family.front().plan;
  if (detail::is_harmless(fault.ingredient, first.shape.blocks)) return false;
  const Plan& last = family.back().plan;
  if (fault.ingredient == Ingredient::backward_scale) {
    return scaled_gradient(last, first, fault) != 1;
  }
  return !(with_fault(last, first, fault, ratio_of(family)) == last);
}

}  // namespace scalewise::check
