// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/architecture/norm_placement.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::plot {

/// Where the norms of a plan's model stand: before a block, unless there is no norm at the end, as in
/// BERT and BART, or the rule is made for the other.
inline NormPlacement norm_placement(const Plan& plan) {
  if (plan.shape.blocks != Blocks::residual) return NormPlacement::none;
  const bool post = !plan.shape.final_norm || plan.rule == "deep-norm";
  return post ? NormPlacement::post : NormPlacement::pre;
}

}  // namespace scalewise::plot
