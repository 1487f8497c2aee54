// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

#include "scalewise/check/fault.hpp"

namespace scalewise::check {

namespace detail {

/// The power of a multiplier that a fold has put into weights, over what they had without it; 0 where none has.
inline double folded_power(const Scales& scales, Ingredient ingredient) {
  const GroupExponents& query = scales.of(Group::query);
  const GroupExponents& key = scales.of(Group::key);
  if (ingredient == Ingredient::attention_scale) {
    const bool alike = query.present && key.present && query.fan_out == key.fan_out &&
                       !query.deviation.is_zero() && !key.deviation.is_zero();
    return alike ? query.deviation.low - key.deviation.low : 0;
  }
  const GroupExponents& gain = scales.of(Group::final_norm_gain);
  const bool in_gain = ingredient == Ingredient::output_multiplier && gain.present;
  return in_gain && !gain.mean.is_zero() ? gain.mean.low : 0;
}

inline bool holds_folded(Ingredient ingredient, Group group) {
  return ingredient == Ingredient::attention_scale
             ? group == Group::query
             : group == Group::final_norm_gain || group == Group::final_norm_bias;
}

/// Weights that are larger by a power of the size, with the rate that moves them alike.
inline void enlarge(GroupExponents& row, double power) {
  if (!row.present) return;
  row.deviation = row.deviation + power;
  row.mean = row.mean + power;
  const double moved = row.normalization == policy::Normalization::none ? 2 * power : power;
  row.rate = row.rate + moved;
  row.planned_rate = row.planned_rate + moved;
}

}  // namespace detail

/// The powers of a table with a mistake in it.
/// Equation: a power p becomes 0 where the factor is missing, 2 p where it is applied twice, p + off where
///           its exponent is off; what is zero stays zero
/// Accuracy: equal to scales_of() a family with_fault() where factors are powers of the size. A backward
///           scale, an epsilon and a decay are not among the powers.
inline Scales with_fault(Scales scales, const Fault& fault) {
  const auto spoil = [&](Band& power) {
    if (power.is_zero()) return;
    power = fault.off != 0 ? power + fault.off : fault.doubled ? 2 * power : Band(0);
  };
  const auto spoil_row = [&](GroupExponents& row) {
    if (!row.present) return;
    if (fault.ingredient == Ingredient::embedding_multiplier && detail::is_input_table(row.group)) {
      spoil(row.multiplier);
    }
    if (detail::spoils_rate(fault.ingredient, row.group)) {
      const Band planned = row.planned_rate;
      spoil(row.planned_rate);
      row.rate = row.rate + row.planned_rate - planned;  // which has the optimizer's own factor
    }
    if (detail::spoils_variance(fault.ingredient, row.group)) spoil(row.deviation);
    if (row.group == Group::router && detail::makes_router_hidden(fault)) {
      if (!row.deviation.is_zero()) row.deviation = -row.fan_in / 2;
      row.rate = row.planned_rate = -row.fan_in;
      row.multiplier = 0;
    }
    if (row.group == Group::expert_down && fault.ingredient == Ingredient::expert_factor) {
      const double power = fault.doubled ? -scales.active_experts : scales.active_experts;
      row.multiplier = row.multiplier + (fault.off != 0 ? fault.off : power);
    }
  };
  if (const double power = detail::folded_power(scales, fault.ingredient); power != 0) {
    const double by = fault.off != 0 ? fault.off : fault.doubled ? power : -power;
    for (const architecture::GroupInfo& info : architecture::group_table) {
      if (!detail::holds_folded(fault.ingredient, info.group)) continue;
      detail::enlarge(scales.of(info.group), by);
      for (auto& [name, row] : scales.tensors) {
        if (row.group == info.group) detail::enlarge(row, by);
      }
    }
    return scales;
  }
  if (fault.ingredient == Ingredient::output_multiplier) spoil(scales.logit_multiplier);
  if (fault.ingredient == Ingredient::attention_scale) spoil(scales.attention_scale);
  if (fault.ingredient == Ingredient::branch_multiplier) spoil(scales.branch);
  if (fault.ingredient == Ingredient::embedding_multiplier) spoil(scales.embedding_multiplier);
  for (GroupExponents& row : scales.groups) spoil_row(row);
  for (auto& [name, row] : scales.tensors) spoil_row(row);
  return scales;
}

/// The power by which a mistake's gradients below the head are off: see scaled_gradient().
/// Units:    an exponent of the size
inline double backward_power(const Scales& scales, const Fault& fault) {
  if (fault.ingredient != Ingredient::backward_scale) return 0;
  return fault.doubled ? scales.logit_multiplier.low : -scales.logit_multiplier.low;
}

/// Whether a mistake changes a power that something follows.
inline bool changes(const Scales& scales, Blocks blocks, const Fault& fault) {
  if (detail::is_harmless(fault.ingredient, blocks)) return false;
  return backward_power(scales, fault) != 0 || !(with_fault(scales, fault) == scales);
}

/// Every part of the table that slopes would show to be missing, or to be applied twice.
inline std::vector<Fault> possible_faults(const Scales& scales, Blocks blocks) {
  std::vector<Fault> all;
  for (const auto& [ingredient, name] : ingredient_words) {
    for (const bool doubled : {false, true}) {
      const Fault fault{ingredient, doubled};
      if (changes(scales, blocks, fault)) all.push_back(fault);
    }
  }
  return all;
}

/// Multipliers whose exponents may be off: along the width those of scores, logits and the embedding, along the depth
/// that of the branches. The normalized transformer has that of the scores alone.
inline std::vector<Ingredient> multipliers(const Scales& scales, Blocks blocks) {
  using enum Ingredient;
  if (blocks == Blocks::shallow_encoder) return {};
  if (blocks == Blocks::listed) return {output_multiplier};
  if (blocks == Blocks::normalized) {
    return scales.layers > 0 ? std::vector<Ingredient>{} : std::vector{attention_scale};
  }
  return scales.layers > 0 ? std::vector{branch_multiplier}
                           : std::vector{attention_scale, output_multiplier, embedding_multiplier};
}

/// Exponents of multipliers that are off by as much as a pass rules out or lists.
inline std::vector<Fault> multiplier_slips(const Scales& scales, Blocks blocks) {
  std::vector<Fault> all;
  for (const Ingredient ingredient : multipliers(scales, blocks)) {
    for (const double off : {-0.2, -0.1, -0.05, 0.05, 0.1, 0.2}) {
      const Fault fault{ingredient, false, off};
      if (changes(scales, blocks, fault)) all.push_back(fault);
    }
  }
  return all;
}

/// Exponents of multipliers, rates and standard deviations that are off, as far as they can be, and not to where the
/// factor is missing or applied twice.
inline std::vector<Fault> possible_slips(const Scales& scales, Blocks blocks) {
  using enum Ingredient;
  std::vector<Fault> all = multiplier_slips(scales, blocks);
  std::vector<Scales> whole;
  for (const Fault& fault : possible_faults(scales, blocks))
    whole.push_back(with_fault(scales, fault));
  const auto add = [&](Ingredient ingredient, double off) {
    const Fault fault{ingredient, false, off};
    if (changes(scales, blocks, fault) &&
        std::find(whole.begin(), whole.end(), with_fault(scales, fault)) == whole.end())
      all.push_back(fault);
  };
  for (const Ingredient ingredient : multipliers(scales, blocks)) {
    for (const double off : {-0.5, 0.5}) add(ingredient, off);
  }
  for (const Ingredient ingredient :
       {hidden_rate, head_rate, input_rate, router_rate, all_rates, hidden_variance, head_variance,
        input_variance, router_variance}) {
    for (const double off :
         {-1.0, -0.5, -0.25, -0.2, -0.15, -0.1, -0.05, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0})
      add(ingredient, off);
  }
  return all;
}

}  // namespace scalewise::check
