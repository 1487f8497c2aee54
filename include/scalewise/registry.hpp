// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "scalewise/core/nearest.hpp"
#include "scalewise/make_plan.hpp"
#include "scalewise/policy/all.hpp"

namespace scalewise {

/// What a list of rules shows.
struct RuleInfo {
  std::string_view id;
  Source source;
  Reference reference = Reference::absolute;
  std::vector<Parameter> parameters;  // with their defaults
};

/// Every shipped rule, in the order of the docs.
inline std::vector<RuleInfo> rules() {
  std::vector<RuleInfo> all;
  for_each_policy([&]<class P>() {
    const P policy{};
    all.push_back({P::id, P::source, P::reference, PolicyView(policy).parameters});
  });
  return all;
}

namespace detail {

/// Sets one field of a policy by name.
/// Throws:   InvalidInput for an unknown name, a non-finite value, or a fraction for a whole number.
template <class P>
void set_parameter(P& policy, const Parameter& parameter) {
  bool found = false;
  std::vector<std::string> known;
  if constexpr (requires { P::parameters(policy, [](const auto&, auto&) {}); }) {
    P::parameters(policy, [&](const auto& name, auto& field) {
      known.emplace_back(name);
      if (parameter.name != name) return;
      found = true;
      using Field = std::remove_reference_t<decltype(field)>;
      const double value = parameter.value;
      const bool whole = value > -1e9 && value < 1e9 && value == static_cast<double>(static_cast<long>(value));
      if (!(value > -1e300 && value < 1e300)) {
        throw InvalidInput(parameter.name, number_text(value), "a finite number");
      }
      if (std::is_same_v<Field, bool> && value != 0 && value != 1) {
        throw InvalidInput(parameter.name, number_text(value), "true (1) or false (0)");
      }
      if (std::is_same_v<Field, int> && !whole) {
        throw InvalidInput(parameter.name, number_text(value), "a whole number");
      }
      field = static_cast<Field>(value);
    });
  }
  if (!found) {
    throw InvalidInput("parameter", parameter.name, "a parameter of " + std::string(P::id),
                       known.empty() ? "it has none" : "did you mean " + nearest(parameter.name, known) + "?");
  }
}

}  // namespace detail

/// Calls visit(policy) with the policy of an id, its parameters set.
/// Throws:   InvalidInput for an unknown id or parameter.
template <class Visitor>
void with_policy(std::string_view id, const std::vector<Parameter>& parameters, Visitor&& visit) {
  bool found = false;
  std::vector<std::string> known;
  for_each_policy([&]<class P>() {
    known.emplace_back(P::id);
    if (found || P::id != id) return;
    found = true;
    P policy{};
    for (const Parameter& parameter : parameters) detail::set_parameter(policy, parameter);
    visit(policy);
  });
  if (!found) {
    throw InvalidInput("rule", std::string(id), "the id of a rule",
                       "did you mean " + nearest(id, known) + "?");
  }
}

/// make_plan with the rule named at run time.
/// Throws:   InvalidInput as make_plan, and for an unknown rule or parameter.
inline Plan make_plan(std::string_view rule, Optimizer optimizer, const Shape& target,
                      const std::optional<Shape>& base = {},
                      const std::vector<Parameter>& parameters = {},
                      DecayForm decay = DecayForm::coupled) {
  std::optional<Plan> plan;
  with_policy(rule, parameters, [&]<class P>(const P& policy) {
    plan = optimizer == Optimizer::sgd
               ? make_plan<P, Optimizer::sgd>(target, base, policy, decay)
               : make_plan<P, Optimizer::adamw>(target, base, policy, decay);
  });
  return *std::move(plan);
}

}  // namespace scalewise
