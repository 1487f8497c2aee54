// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/policy/all.hpp"
#include "scalewise/policy/parameter.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise {

struct Rule;

namespace detail {

/// The members of a policy of any type; an optional one that the policy lacks does what its absence means.
struct AnyPolicy {
  virtual ~AnyPolicy() = default;
  virtual Row row(Group group, const policy::Context& context) const = 0;
  virtual ModelRow model(const policy::Context& context) const = 0;
  virtual Shape adapt(const Shape& shape) const = 0;
  virtual void validate(const Shape& shape) const = 0;
  virtual std::vector<policy::OwnValues> own_values(const policy::Context& context) const = 0;
  virtual Rule with(const std::vector<Parameter>& parameters) const = 0;
  virtual std::vector<std::string> parameter_names() const = 0;
};

template <Policy P>
struct PolicyOf;

}  // namespace detail

/// A rule to plan by: a policy of any type, of which it keeps a copy, or the name of a shipped one.
struct Rule {
  /// Throws:   InvalidInput for a name of no rule.
  template <class R>
  Rule(const R& rule) {
    if constexpr (std::convertible_to<const R&, std::string_view>) {
      const std::string name = policy::rule_id(rule);
      policy::for_each_policy([&]<class P>() {
        if (P::id == name) *this = P{};
      });
    } else if constexpr (require_policy<R>()) {
      id = R::id;
      source = R::source;
      reference = R::reference;
      optimizers.assign(R::optimizers.begin(), R::optimizers.end());
      parameters = detail::parameters_of(rule);
      if constexpr (requires { R::text; }) text = R::text;
      to_give = detail::parameters_to_give(rule);
      policy = std::make_shared<const detail::PolicyOf<R>>(rule);
    }
  }

  /// The rule with other values of some parameters.
  /// Throws:   InvalidInput for a parameter that it does not have, or a value that it cannot take.
  Rule with(const std::vector<Parameter>& changes) const { return policy->with(changes); }

  std::string_view id;
  Source source;
  Reference reference = Reference::absolute;
  std::vector<Optimizer> optimizers;
  std::vector<Parameter> parameters;  // with their values
  policy::TextModel text = {};
  std::vector<std::string> to_give;  // parameters without a value, which depend on the run
  std::shared_ptr<const detail::AnyPolicy> policy;
};

namespace detail {

/// A policy of one type, so that planning is compiled once for all of them.
template <Policy P>
struct PolicyOf final : AnyPolicy {
  explicit PolicyOf(const P& p) : policy(p) {}

  Row row(Group group, const policy::Context& context) const override {
    return policy::row_of(policy, group, context);
  }
  ModelRow model(const policy::Context& context) const override {
    return policy::model_of(policy, context);
  }
  Shape adapt(const Shape& shape) const override { return adapted(policy, shape); }
  void validate([[maybe_unused]] const Shape& shape) const override {
    if constexpr (requires { policy.validate(shape); }) policy.validate(shape);
  }
  std::vector<policy::OwnValues> own_values(
      [[maybe_unused]] const policy::Context& context) const override {
    if constexpr (requires { policy.own_values(context); }) return policy.own_values(context);
    return {};
  }
  Rule with(const std::vector<Parameter>& parameters) const override {
    P changed = policy;
    for (const Parameter& parameter : parameters) set_parameter(changed, parameter);
    return changed;
  }

  std::vector<std::string> parameter_names() const override { return names_of_parameters(policy); }

  P policy;
};

}  // namespace detail

namespace policy {

/// True for a rule any of whose numbers has a scaling of this kind.
inline bool has_scaling(const Rule& rule, const auto& kind) {
  bool found = false;
  const auto look = [&](const auto& cell) { found = found || kind(cell.scaling); };
  for_each_cell(rule.policy->model({}), look);
  for (const Optimizer& optimizer : rule.optimizers) {
    for (std::size_t g = 0; g < architecture::group_count; ++g) {
      const auto group = static_cast<Group>(g);
      const Row row = rule.policy->row(group, {});
      const Optimizer& of_group = optimizer_of(optimizer, group);
      if (row.rates.has(of_group)) for_each_cell(row, of_group, look);
    }
  }
  return found;
}

/// True when any number of a rule depends on the base shape.
inline bool needs_base(const Rule& rule) {
  return has_scaling(rule, [](const Scaling& scaling) { return scaling.needs_base(); });
}

/// True when any number of a rule depends on the number of steps.
inline bool scales_with_horizon(const Rule& rule) {
  return has_scaling(rule, [](const Scaling& scaling) {
    for (const scaling::Factor& factor : scaling.factors()) {
      if (factor.is(symbols::iterations)) return true;
    }
    return false;
  });
}

}  // namespace policy

/// Every shipped rule, with the defaults of its parameters, in the order of the docs.
inline std::vector<Rule> rules() {
  std::vector<Rule> all;
  policy::for_each_policy([&]<class P>() { all.emplace_back(P{}); });
  return all;
}

namespace policy {

/// The names of a rule's parameters, in the order of its page.
inline std::vector<std::string> parameter_names(const Rule& rule) {
  return rule.policy->parameter_names();
}

}  // namespace policy

}  // namespace scalewise
