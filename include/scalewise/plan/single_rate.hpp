// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scalewise/numeric/number_text.hpp"
#include "scalewise/numeric/power.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/move_multiplier.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise {

namespace detail {

/// The line on tensors that want another factor than most, where an optimizer has one for all.
template <Kind kind>
void leave_others(RewrittenPlan& result, const char* what, Number<kind> Entry::*field) {
  const std::vector<Entry>& entries = result.plan.entries;
  double low = (entries.front().*field).value, high = low;
  for (const Entry& entry : entries) {
    const double value = (entry.*field).value;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (high - low <= 1e-12 * high) return;
  result.left.push_back(std::string(what) + ": from " + numeric::number_text(low) + " to " +
                        numeric::number_text(high) + " times the global one");
}

}  // namespace detail

/// The same training with one learning rate for all tensors: what a tensor's factor was is a multiplier in
/// the forward pass.
/// Equation: W = r W' trains with the global rate as W with r times it; the square root of r where the
///           optimizer does not normalize gradients
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Lemma J.1
/// Accuracy: exact: trajectories agree to rounding.
/// Throws:   InvalidInput for a plan that check_plan() refuses, for one of the normalized transformer, and
///           for a tensor whose factor is 0.
/// Differs:  an optimizer of one rate has often one decay and one epsilon too: `left` says where these still
///           differ.
inline RewrittenPlan single_rate(const Plan& plan) {
  check_plan(plan);
  if (plan.shape.blocks == Blocks::normalized) {
    throw InvalidInput("blocks", "normalized", "residual blocks",
                       "the normalized transformer sets the size of its matrices after each step");
  }
  RewrittenPlan result{plan, {}};
  for (Entry& entry : result.plan.entries) {
    const Number<Kind::rate> rate = entry.learning_rate;
    if (!(rate.value > 0)) {
      throw InvalidInput("learning rate of " + entry.name, numeric::number_text(rate.value),
                         "a positive factor");
    }
    if (detail::is_one(rate)) continue;
    const bool squared = entry.optimizer.normalization == policy::Normalization::none;
    const plan::MovedFactor factor{{squared ? numeric::root(rate.value, 2) : rate.value,
                                    squared ? sqrt(rate.scaling) : rate.scaling}};
    plan::store_times(result.plan, entry, factor, -1);
    entry.learning_rate = {1, 1};
    detail::times_multiplier(result.plan, entry, factor.number);
    const bool tied = result.plan.shape.tied_head.value_or(false);
    if (tied && entry.group == Group::token_embedding && !plan::is_extra(plan, entry))
      detail::times_power(result.plan.model.logit_multiplier, factor.number, 1);
  }
  detail::leave_others(result, "weight decay", &Entry::weight_decay);
  if (plan::uses_epsilon(plan)) detail::leave_others(result, "epsilon", &Entry::epsilon);
  return result;
}

}  // namespace scalewise
