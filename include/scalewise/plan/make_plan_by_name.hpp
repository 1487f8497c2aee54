// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/registry.hpp"

namespace scalewise::inline plan {

/// make_plan with the rule named at run time.
/// Throws:   InvalidInput as make_plan, and for an unknown rule or parameter.
template <class = void>  // so that only who calls it compiles all policies
Plan make_plan(std::string_view rule, const Optimizer& optimizer, const Shape& target,
               const std::optional<Shape>& base = {}, const std::vector<Parameter>& parameters = {},
               DecayForm decay = DecayForm::coupled) {
  Plan plan;
  with_policy(rule, parameters, [&](const auto& policy) {
    const PolicyView view(policy);
    plan = detail::Planner<PolicyView, Plan>(view, optimizer, decay, target, base).make();
  });
  return plan;
}

}  // namespace scalewise::inline plan
