// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plan/plan_request.hpp"
#include "scalewise/plan/planner.hpp"
#include "scalewise/plan/start.hpp"
#include "scalewise/policy/rule.hpp"

namespace scalewise {

/// The plan of a model under a rule, which is a policy or the name of a shipped one: for each tensor the row of its
/// group, with the tensor's fans and the sizes of the model put in, becomes an entry (detail::Planner). `extras` are
/// tensors that the shape does not have; `start` is a rule that says how the base is initialized.
/// Shapes:   one entry per tensor of the model, in the order stem, blocks, head, and then per tensor of the extras.
/// Throws:   InvalidInput, naming the field, for a name of no rule, a parameter that the rule does not have, a shape
///           that cannot be, a missing base, an optimizer that the rule does not state, an extra that extra_tensors()
///           refuses or that has the name of another tensor, L2 decay inside Adam under a rule that scales rates, a
///           start that with_start() refuses, constants that with_constants() refuses, or a number that check_plan()
///           refuses.
inline Plan make_plan(const Rule& rule, const PlanRequest& request) {
  Plan plan = detail::Planner(rule.with(request.parameters), request).make();
  if (!request.start) return plan::with_constants(plan, request.constants);
  const Rule& start = *request.start;
  if (!plan.base) {
    throw InvalidInput("start", std::string(start.id), "a rule with a base",
                       plan.rule + " says itself how a model starts");
  }
  const Plan of_base = make_plan(start, {.model = *plan.base,
                                         .base = plan.base,
                                         .optimizer = start.optimizers.front(),
                                         .extras = plan.extras});
  return plan::with_constants(with_start(plan, of_base), request.constants);
}

}  // namespace scalewise
