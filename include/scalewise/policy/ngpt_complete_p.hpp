// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// nGPT with μP in width and CompleteP in depth: full alignment, logits of order 1/√n at first.
/// Equation: the column below; m_N = n/n0, m_L = L/L0
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), Table 1, column "CompleteP".
/// Units:    rates are factors on the global rate; no weight decay.
/// Differs:  none; Table 2 has the same column with the token-horizon correction of νGPT.
struct NGptCompleteP {
  static constexpr std::string_view id = "ngpt-complete-p";
  static constexpr Source source = detail::normalized_source("Table 1, column CompleteP");
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{adamw};

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = 1,
        .input_rate  = 1 / sqrt(m_N),
        .hidden_rate = 1 / m_N,
        .output_rate = 1 / m_N,
        .step_init   = 0.05 / m_L,
        .scale       = 0.03,
        .logit_init  = 1,
    };
    // clang-format on
  }

  constexpr Row row(Group group) const { return policy::normalized_row(group, column()); }
  constexpr ModelRow model() const { return policy::normalized_model(); }
  /// The shape as a normalized transformer.
  /// Throws:   InvalidInput as normalized_shape().
  constexpr Shape adapt(Shape shape) const { return policy::normalized_shape(shape); }
};

static_assert(Policy<NGptCompleteP>);

}  // namespace scalewise
