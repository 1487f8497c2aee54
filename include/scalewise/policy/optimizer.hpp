// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::inline policy {

/// What an optimizer makes of the size of a gradient.
/// Equation: none: Δw = r g; by_entry: Δw = r g/|g|, entry by entry; by_matrix: Δw = r U Vᵀ, where
///           g = U S Vᵀ, so that every singular value of a step is r
enum class Normalization { none, by_entry, by_matrix };

/// An optimizer, as far as a rule can tell it from others.
struct Optimizer {
  std::string_view name;
  Normalization normalization = Normalization::none;
  bool has_epsilon = false;       // added to the root that the gradient is divided by
  std::string_view case_of = {};  // the optimizer whose rates it has, being a case of it

  friend constexpr bool operator==(const Optimizer& a, const Optimizer& b) {
    return a.name == b.name;
  }
};

inline constexpr Optimizer sgd{.name = "sgd"};
inline constexpr Optimizer adamw{
    .name = "adamw", .normalization = Normalization::by_entry, .has_epsilon = true};
/// Sign descent: AdamW with β1, β2 and ε of zero.
inline constexpr Optimizer sign_sgd{
    .name = "sign-sgd", .normalization = Normalization::by_entry, .case_of = "adamw"};

/// The optimizers that files and command lines can name.
inline constexpr std::array known_optimizers{adamw, sgd, sign_sgd};

template <class Optimizers>
std::vector<std::string> names_of(const Optimizers& optimizers) {
  std::vector<std::string> names;
  names.reserve(optimizers.size());
  for (const auto& optimizer : optimizers) names.emplace_back(optimizer.name);
  return names;
}

/// The optimizer of a name. Throws: InvalidInput naming the field and the closest name.
template <class = void>  // so that only who calls it compiles it
Optimizer optimizer_named(const std::string& field, std::string_view name) {
  for (const Optimizer& optimizer : known_optimizers) {
    if (optimizer.name == name) return optimizer;
  }
  const std::vector<std::string> known = names_of(known_optimizers);
  throw InvalidInput(field, printable(name), listed(known), did_you_mean(name, known));
}

}  // namespace scalewise::inline policy
