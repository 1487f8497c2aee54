// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/group.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

namespace policy {

/// How an optimizer treats the size of a gradient.
/// Equation: none: Δw = r g; by_entry: Δw = r g/|g|, entry by entry; by_matrix: Δw = r U Vᵀ, where
///           g = U S Vᵀ, so that every singular value of a step is r
enum class Normalization { none, by_entry, by_matrix };

/// The factor by which an optimizer that normalizes matrices multiplies its steps itself.
/// Equation: one: 1; fan_ratio: √(fan_out/fan_in); original: √max(1, fan_out/fan_in);
///           larger_fan: √max(fan_in, fan_out); match_adamw: 0.2 √max(fan_in, fan_out)
enum class OwnFactor { one, fan_ratio, original, larger_fan, match_adamw };

}  // namespace policy

/// An optimizer, as far as rules distinguish optimizers.
struct Optimizer {
  std::string_view name;
  policy::Normalization normalization = policy::Normalization::none;
  bool has_epsilon = false;       // added to the root that the gradient is divided by
  std::string_view case_of = {};  // the optimizer whose rates it has, being a case of it
  policy::OwnFactor own_factor = policy::OwnFactor::one;

  friend constexpr bool operator==(const Optimizer& a, const Optimizer& b) {
    return a.name == b.name;
  }
};

/// Stochastic gradient descent, with or without momentum.
inline constexpr Optimizer sgd{.name = "sgd"};
/// AdamW, and Adam without weight decay.
inline constexpr Optimizer adamw{
    .name = "adamw", .normalization = policy::Normalization::by_entry, .has_epsilon = true};
/// Sign descent: AdamW with β1, β2 and ε of zero.
inline constexpr Optimizer sign_sgd{
    .name = "sign-sgd", .normalization = policy::Normalization::by_entry, .case_of = "adamw"};

/// Muon: every hidden matrix moves by its momentum with all singular values made 1; all other tensors
/// have AdamW. A rule states its rate for such steps; a plan divides that by the factor that
/// the optimizer applies itself, so that nothing is scaled twice.
/// Source:   the factors of existing optimizers, see muon_names; 0.2 √max is of Liu et al. 2025
///           (arXiv:2502.16982), and the fan ratio the spectral condition of Yang, Simon, Bernstein 2023
///           (arXiv:2310.17813)
inline constexpr Optimizer muon{.name = "muon-plain",
                                .normalization = policy::Normalization::by_matrix};
/// Muon that multiplies its steps by √(fan_out/fan_in).
inline constexpr Optimizer muon_fan_ratio{.name = "muon-fan-ratio",
                                          .normalization = policy::Normalization::by_matrix,
                                          .case_of = "muon-plain",
                                          .own_factor = policy::OwnFactor::fan_ratio};
/// Muon that multiplies its steps by √max(1, fan_out/fan_in), as its first implementation does.
inline constexpr Optimizer muon_original{.name = "muon-original",
                                         .normalization = policy::Normalization::by_matrix,
                                         .case_of = "muon-plain",
                                         .own_factor = policy::OwnFactor::original};
/// Muon that multiplies its steps by √max(fan_in, fan_out).
inline constexpr Optimizer muon_spectral{.name = "muon-spectral",
                                         .normalization = policy::Normalization::by_matrix,
                                         .case_of = "muon-plain",
                                         .own_factor = policy::OwnFactor::larger_fan};
/// Muon that multiplies its steps by 0.2 √max(fan_in, fan_out), so that they are as large as AdamW's.
inline constexpr Optimizer muon_match_adamw{.name = "muon-match-adamw",
                                            .normalization = policy::Normalization::by_matrix,
                                            .case_of = "muon-plain",
                                            .own_factor = policy::OwnFactor::match_adamw};

namespace policy {

/// The factor by which an optimizer multiplies the step of a matrix itself.
/// Equation: OwnFactor
/// Source:   docs/muon.md, with the file and revision of each implementation
/// Units:    a factor on the step
inline double own_factor(const Optimizer& optimizer, double fan_in, double fan_out) {
  switch (optimizer.own_factor) {
    case OwnFactor::one:
      return 1;
    case OwnFactor::fan_ratio:
      return std::sqrt(fan_out / fan_in);
    case OwnFactor::original:
      return std::sqrt(fan_out > fan_in ? fan_out / fan_in : 1);
    case OwnFactor::larger_fan:
      return std::sqrt(fan_out > fan_in ? fan_out : fan_in);
    case OwnFactor::match_adamw:
      return 0.2 * std::sqrt(fan_out > fan_in ? fan_out : fan_in);
  }
  return 1;
}

/// The same as text.
constexpr std::string_view own_factor_text(OwnFactor factor) {
  switch (factor) {
    case OwnFactor::one:
      return "1";
    case OwnFactor::fan_ratio:
      return "√(fan-out/fan-in)";
    case OwnFactor::original:
      return "√max(1, fan-out/fan-in)";
    case OwnFactor::larger_fan:
      return "√max(fan-in, fan-out)";
    case OwnFactor::match_adamw:
      return "0.2 √max(fan-in, fan-out)";
  }
  return "";
}

/// The optimizers that files and command lines can name.
inline constexpr std::array known_optimizers{
    adamw, sgd, sign_sgd, muon, muon_fan_ratio, muon_original, muon_spectral, muon_match_adamw};

/// The optimizer of one group's tensors: one that normalizes matrices leaves all but hidden ones to AdamW.
constexpr Optimizer optimizer_of(const Optimizer& optimizer, Group group) {
  const bool has_it =
      optimizer.normalization != Normalization::by_matrix || role_of(group) == Role::hidden;
  return has_it ? optimizer : adamw;
}

template <class Optimizers>
std::vector<std::string> names_of(const Optimizers& optimizers) {
  std::vector<std::string> names;
  names.reserve(optimizers.size());
  for (const auto& optimizer : optimizers) names.emplace_back(optimizer.name);
  return names;
}

/// The optimizer of a name.
/// Throws:   InvalidInput naming the field and the closest name.
inline Optimizer optimizer_named(const std::string& field, std::string_view name) {
  for (const Optimizer& optimizer : known_optimizers) {
    if (optimizer.name == name) return optimizer;
  }
  const std::vector<std::string> known = names_of(known_optimizers);
  throw InvalidInput(field, messages::printable(name), messages::listed(known),
                     messages::did_you_mean(name, known));
}

}  // namespace policy

}  // namespace scalewise
