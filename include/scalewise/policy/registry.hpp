// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/policy/policy_view.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise::inline policy {

/// A rule as a list of rules shows it.
struct RuleInfo {
  std::string_view id;
  Source source;
  Reference reference = Reference::absolute;
  bool needs_base = false;
  std::vector<Optimizer> optimizers;
  std::vector<Parameter> parameters;  // with their defaults
};

/// True when any number of a rule depends on the base shape.
template <Policy P>
constexpr bool needs_base(const P& policy) {
  bool relative = false;
  const auto look = [&](const auto& cell) { relative = relative || cell.scaling.is_relative(); };
  for_each_cell(model_of(policy), look);
  for (const Optimizer& optimizer : P::optimizers) {
    for (std::size_t g = 0; g < group_count; ++g) {
      const auto group = static_cast<Group>(g);
      for_each_cell(row_of(policy, group), optimizer_of(optimizer, group), look);
    }
  }
  return relative;
}

/// Every shipped rule, in the order of the docs.
template <class = void>  // all policies are compiled only if used
std::vector<RuleInfo> rules() {
  std::vector<RuleInfo> all;
  for_each_policy([&]<class P>() {
    const P policy{};
    const PolicyView view(policy);
    all.push_back(
        {P::id, P::source, P::reference, needs_base(policy), view.optimizers, view.parameters});
  });
  return all;
}

namespace detail {

/// Writes a number into a field of a policy.
/// Throws:   InvalidInput for a non-finite value, or a fraction for a whole number.
template <class Field>
void assign(Field& field, const Parameter& parameter) {
  const double value = parameter.value;
  const auto require = [&](bool ok, const char* expectation) {
    if (!ok) throw InvalidInput(parameter.name, number_text(value), expectation);
  };
  require(value > -1e9 && value < 1e9, "a number between -1e9 and 1e9");
  if constexpr (std::is_same_v<Field, bool>) require(value == 0 || value == 1, "true or false");
  if constexpr (std::is_same_v<Field, int>) {
    require(value == static_cast<int>(value), "a whole number");
  }
  field = static_cast<Field>(value);
}

/// Calls visit(name, field) for every parameter of a policy that has any.
template <class P, class Visitor>
void for_each_parameter(P& policy, Visitor&& visit) {
  if constexpr (requires { P::parameters(policy, visit); }) P::parameters(policy, visit);
}

/// Sets one field of a policy by name.
/// Throws:   InvalidInput for an unknown name or a value that the field cannot take.
template <class P>
void set_parameter(P& policy, const Parameter& parameter) {
  bool found = false;
  Nearest known(parameter.name);
  std::vector<std::string> names;
  for_each_parameter(policy, [&](const auto& name, auto& field) {
    known.offer(name);
    names.emplace_back(name);
    if (parameter.name != name) return;
    found = true;
    assign(field, parameter);
  });
  if (found) return;
  throw InvalidInput("parameter", parameter.name, "a parameter of " + std::string(P::id),
                     names.empty()   ? "it has none"
                     : known.empty() ? "it has " + listed(names)
                                     : known.hint());
}

}  // namespace detail

/// Calls visit(policy) with the policy of an id or an alias, its parameters set.
/// Throws:   InvalidInput for an unknown rule or parameter.
template <class Visitor>
void with_policy(std::string_view rule, const std::vector<Parameter>& parameters, Visitor&& visit) {
  const std::string id = rule_id(rule);
  for_each_policy([&]<class P>() {
    if (P::id != id) return;
    P policy{};
    for (const Parameter& parameter : parameters) detail::set_parameter(policy, parameter);
    visit(policy);
  });
}

/// The names of a rule's parameters, in the order of its page.
/// Throws:   InvalidInput for an unknown rule.
template <class = void>  // all policies are compiled only if used
std::vector<std::string> parameter_names(std::string_view rule) {
  std::vector<std::string> names;
  with_policy(rule, {}, [&](auto& policy) {
    detail::for_each_parameter(policy,
                               [&](const auto& name, const auto&) { names.emplace_back(name); });
  });
  return names;
}

}  // namespace scalewise::inline policy
