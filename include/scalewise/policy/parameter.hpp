// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/number_text.hpp"

namespace scalewise {

/// A number with a name: a rule's own parameter, such as the s of the meta-principled family, or a constant of the base.
struct Parameter {
  std::string name;
  double value = 0;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

namespace detail {

/// Calls visit(name, field) for every parameter of a policy that has any.
template <class P, class Visitor>
void for_each_parameter(P& policy, Visitor&& visit) {
  if constexpr (requires { P::parameters(policy, visit); }) P::parameters(policy, visit);
}

/// Every parameter of a policy that has a value.
template <class P>
std::vector<Parameter> parameters_of(const P& policy) {
  std::vector<Parameter> list;
  for_each_parameter(policy, [&list](const auto& name, const auto& value) {
    if constexpr (requires { *value; }) {
      if (value) list.push_back({name, *value});
    } else {
      list.push_back({name, static_cast<double>(value)});
    }
  });
  return list;
}

/// Parameters that have to be given: each is a std::optional without a value.
template <class P>
std::vector<std::string> parameters_to_give(const P& policy) {
  std::vector<std::string> list;
  for_each_parameter(policy, [&list](const auto& name, const auto& value) {
    if constexpr (requires { *value; }) {
      if (!value) list.push_back(name);
    }
  });
  return list;
}

/// Writes a number into a field of a policy.
/// Throws:   InvalidInput for a non-finite value, or a fraction for a whole number.
template <class Field>
void assign(Field& field, const Parameter& parameter) {
  const double value = parameter.value;
  const auto require = [&](bool ok, const char* expectation) {
    if (!ok) throw InvalidInput(parameter.name, numeric::number_text(value), expectation);
  };
  require(value > -1e9 && value < 1e9, "a number between -1e9 and 1e9");
  if constexpr (std::is_same_v<Field, bool>) require(value == 0 || value == 1, "true or false");
  if constexpr (std::is_same_v<Field, int>) {
    require(value == static_cast<int>(value), "a whole number");
  }
  field = static_cast<Field>(value);
}

/// The names of a policy's parameters, those among them that have their defaults.
template <class P>
std::vector<std::string> names_of_parameters(P policy) {
  std::deque<std::string> names;  // GCC 12 warns of a growing vector where all of it is inlined
  for_each_parameter(policy, [&](const auto& name, auto&) { names.emplace_back(name); });
  return {names.begin(), names.end()};
}

/// Sets one field of a policy by name.
/// Throws:   InvalidInput for an unknown name or a value that the field cannot take.
template <class P>
void set_parameter(P& policy, const Parameter& parameter) {
  bool found = false;
  messages::Nearest known(parameter.name);
  for_each_parameter(policy, [&](const auto& name, auto& field) {
    known.offer(name);
    if (parameter.name != name) return;
    found = true;
    assign(field, parameter);
  });
  if (found) return;
  const std::vector<std::string> names = names_of_parameters(policy);
  throw InvalidInput("parameter", parameter.name, "a parameter of " + std::string(P::id),
                     names.empty()   ? "it has none"
                     : known.empty() ? "it has " + messages::listed(names)
                                     : known.hint());
}

}  // namespace detail

}  // namespace scalewise
