// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/start.hpp"
#include "scalewise/policy/registry.hpp"

namespace scalewise::inline plan {

/// make_plan with the rule named at run time.
/// Throws:   InvalidInput as make_plan, and for an unknown rule or parameter.
template <class = void>  // all policies are compiled only if used
Plan make_plan(std::string_view rule, const Optimizer& optimizer, const Shape& target,
               const std::optional<Shape>& base = {}, const std::vector<Parameter>& parameters = {},
               DecayForm decay = DecayForm::coupled, const std::vector<Extra>& extras = {}) {
  Plan plan;
  with_policy(rule, parameters, [&](const auto& policy) {
    const PolicyView view(policy);
    plan = detail::Planner(view, optimizer, decay, target, base, extras).make();
  });
  return plan;
}

/// with_start() with the start's rule named at run time.
/// Throws:   InvalidInput as with_start(), and for an unknown rule.
template <class = void>
Plan with_start(const Plan& plan, std::string_view start) {
  if (!plan.base) {
    throw InvalidInput("start", std::string(start), "a rule with a base",
                       plan.rule + " says itself how a model starts");
  }
  Plan begin;
  with_policy(start, {}, [&](const auto& policy) {
    const PolicyView view(policy);
    begin = detail::Planner(view, view.optimizers.front(), DecayForm::coupled, *plan.base,
                            plan.base, plan.extras)
                .make();
  });
  return with_start(plan, begin);
}

}  // namespace scalewise::inline plan
