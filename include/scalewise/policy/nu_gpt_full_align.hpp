// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// νGPT under the full alignment assumption, the control of the source's logit ablation.
/// Equation: the column below; m_N = n/n0, m_L = L/L0, m_D = iterations/iterations0
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section B.5, Table 2.
/// Units:    rates are factors on the global rate; no weight decay.
/// Differs:  none.
struct NuGptFullAlign {
  static constexpr std::string_view id = "nu-gpt-full-align";
  static constexpr Source source = detail::normalized_source("section B.5, Table 2");
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{adamw};

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = pow(m_D, Exponent{-1, 3}),
        .input_rate  = 1 / sqrt(m_N),
        .hidden_rate = 1 / m_N,
        .output_rate = 1 / m_N,
        .step_init   = 0.05 / m_L,
        .scale       = 0.03,
        .logit_init  = sqrt(m_N),
    };
    // clang-format on
  }

  constexpr Row row(Group group) const { return policy::normalized_row(group, column()); }
  constexpr ModelRow model() const { return policy::normalized_model(); }
  /// The shape as a normalized transformer.
  /// Throws:   InvalidInput as normalized_shape().
  constexpr Shape adapt(Shape shape) const { return policy::normalized_shape(shape); }
};

static_assert(Policy<NuGptFullAlign>);

}  // namespace scalewise
