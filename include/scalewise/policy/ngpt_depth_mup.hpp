// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// nGPT with Depth-μP's corrections: hidden rates fall with width and with √depth.
/// Equation: the column below; m_N = n/n0, m_L = L/L0
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), Table 1, column "Depth-μP".
/// Units:    rates are factors on the global rate; no weight decay.
/// Differs:  none. The source uses this column to show that depth transfer breaks (section 4.5).
struct NGptDepthMup {
  static constexpr std::string_view id = "ngpt-depth-mup";
  static constexpr Source source = detail::normalized_source("Table 1, column Depth-μP");
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text = policy::normalized_text;
  static constexpr std::array optimizers{adamw};

  double input_rate = 1;  // constants tuned on the base model, point 4 of section 3.1
  double output_rate = 1;

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = 1,
        .input_rate  = input_rate / sqrt(m_N),
        .hidden_rate = 1 / (m_N * sqrt(m_L)),
        .output_rate = output_rate / m_N,
        .step_init   = 0.05 / sqrt(m_L),
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
  /// Checks the parameters.
  /// Throws:   InvalidInput for a rate that is not positive.
  constexpr void validate(const Shape&) const {
    policy::require_end_rates(input_rate, output_rate);
  }
  static void parameters(auto& self, auto&& visit) {
    visit("input_rate", self.input_rate);
    visit("output_rate", self.output_rate);
  }
};

static_assert(Policy<NGptDepthMup>);

}  // namespace scalewise
