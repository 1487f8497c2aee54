// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/complete_p.hpp"

namespace scalewise {

/// Depth-μP: maximal update in width, residual branches that shrink as 1/√L.
/// Equation: x + m_L^(-1/2) f(norm x); CompleteP's table with α = 1/2
/// Source:   Dey et al. 2025 (arXiv:2505.01618), Table 1 at α = 1/2; the rule is due to Yang, Yu,
///           Zhu, Hayou 2023 (arXiv:2310.02244v5) and Bordelon et al. 2023 (arXiv:2309.16620v2).
/// Units:    as CompleteP.
/// Differs:  as CompleteP.
struct DepthMup {
  static constexpr std::string_view id = "depth-mup";
  static constexpr Source source{
      "Don't be lazy: CompleteP enables compute-efficient deep transformers",
      "Dey, Zhang, Noci, Li, Bordelon, Bergsma, Pehlevan, Hanin, Hestness", "2025",
      "arXiv:2505.01618", "Table 1 at alpha = 1/2"};
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{adamw};

  policy::Experts experts = {};

  constexpr Row row(Group group, const policy::Context& context = {}) const {
    return CompleteP{.alpha = 0.5, .experts = experts}.row(group, context);
  }
  constexpr ModelRow model() const { return CompleteP{.alpha = 0.5}.model(); }

  /// Checks the parameters.
  /// Throws:   InvalidInput as Experts::validate().
  constexpr void validate(const Shape&) const { experts.validate(); }

  static void parameters(auto& self, auto&& visit) {
    policy::Experts::parameters(self.experts, visit);
  }
};

static_assert(Policy<DepthMup>);

}  // namespace scalewise
