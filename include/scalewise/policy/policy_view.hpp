// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/policy/policy.hpp"

namespace scalewise::inline policy {

/// A rule's own parameter, such as the s of the meta-principled family.
struct Parameter {
  std::string name;
  double value = 0;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

/// Appends every parameter of a policy with its value.
template <class P, class List>
void list_parameters(const P& policy, List& list) {
  if constexpr (requires { P::parameters(policy, [](const auto&, const auto&) {}); }) {
    P::parameters(policy, [&list](const auto& name, const auto& value) {
      list.push_back({std::string(name), static_cast<double>(value)});
    });
  }
}

/// A policy of any type as one type, so that planning is compiled once. Refers to the policy, does
/// not own it.
class PolicyView {
 public:
  template <Policy P>
  explicit PolicyView(const P& policy)
      : id(P::id),
        source(P::source),
        reference(P::reference),
        optimizers(P::optimizers.begin(), P::optimizers.end()),
        policy_(&policy) {
    states_ = [](const void* p, const Optimizer& optimizer) {
      return scalewise::states(*static_cast<const P*>(p), optimizer);
    };
    row_ = [](const void* p, Group group, const Context& context) {
      return row_of(*static_cast<const P*>(p), group, context);
    };
    model_ = [](const void* p, const Context& context) {
      return model_of(*static_cast<const P*>(p), context);
    };
    adapt_ = [](const void* p, const Shape& shape) {
      return adapted(*static_cast<const P*>(p), shape);
    };
    if constexpr (requires(const P& p, const Shape& shape) { p.validate(shape); }) {
      validate_ = [](const void* p, const Shape& s) { static_cast<const P*>(p)->validate(s); };
    }
    if constexpr (requires(const P& p, const Context& context) { p.own_values(context); }) {
      own_values_ = [](const void* p, const Context& context) {
        return static_cast<const P*>(p)->own_values(context);
      };
    }
    list_parameters(policy, parameters);
  }

  Row row(Group group, const Context& context) const { return row_(policy_, group, context); }
  ModelRow model(const Context& context) const { return model_(policy_, context); }
  bool states(const Optimizer& optimizer) const { return states_(policy_, optimizer); }
  Shape adapt(const Shape& shape) const { return adapt_(policy_, shape); }
  void validate(const Shape& shape) const {
    if (validate_ != nullptr) validate_(policy_, shape);
  }
  std::vector<OwnValues> own_values(const Context& context) const {
    if (own_values_ == nullptr) return {};
    return own_values_(policy_, context);
  }

  std::string_view id;
  Source source;
  Reference reference;
  std::vector<Optimizer> optimizers;
  std::vector<Parameter> parameters;

 private:
  const void* policy_;
  bool (*states_)(const void*, const Optimizer&) = nullptr;
  Row (*row_)(const void*, Group, const Context&) = nullptr;
  ModelRow (*model_)(const void*, const Context&) = nullptr;
  Shape (*adapt_)(const void*, const Shape&) = nullptr;
  void (*validate_)(const void*, const Shape&) = nullptr;
  std::vector<OwnValues> (*own_values_)(const void*, const Context&) = nullptr;
};

}  // namespace scalewise::inline policy
