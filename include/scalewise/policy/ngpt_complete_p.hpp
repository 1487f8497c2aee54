// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// nGPT with μP in width and CompleteP in depth: full alignment, logits of order 1/√n at first.
/// Equation: the column below; m_N = n/n0, m_L = L/L0, m_D = iterations/iterations0
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), Table 1, column "CompleteP"; with
///           horizon_exponent = 1/3 Table 2, left column; other depth exponents: eqs. (10), (11).
/// Units:    rates are factors on the global rate; no weight decay.
/// Differs:  none.
struct NGptCompleteP {
  static constexpr std::string_view id = "ngpt-complete-p";
  static constexpr Source source = detail::normalized_source("Table 1, column CompleteP");
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text = policy::normalized_text;
  static constexpr std::array optimizers{adamw};

  double input_rate = 1;  // constants tuned on the base model, point 4 of section 3.1
  double output_rate = 1;
  double depth_exponent = 1;    // α_depth of eqs. (10) and (11): 1/2 is Depth-μP
  double horizon_exponent = 0;  // 1/3 is the left column of Table 2

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = pow(m_D, -exponent(horizon_exponent)),
        .input_rate  = input_rate / sqrt(m_N),
        .hidden_rate = pow(m_L, exponent(depth_exponent) - 1) / m_N,
        .output_rate = output_rate / m_N,
        .step_init   = 0.05 * pow(m_L, -exponent(depth_exponent)),
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
  /// Throws:   InvalidInput for a rate that is not positive, and an exponent outside [0, 1].
  constexpr void validate(const Shape&) const {
    policy::require_end_rates(input_rate, output_rate);
    policy::require_between("depth_exponent", depth_exponent, 0, 1);
    policy::require_between("horizon_exponent", horizon_exponent, 0, 1);
  }
  static void parameters(auto& self, auto&& visit) {
    visit("input_rate", self.input_rate);
    visit("output_rate", self.output_rate);
    visit("depth_exponent", self.depth_exponent);
    visit("horizon_exponent", self.horizon_exponent);
  }
};

static_assert(Policy<NGptCompleteP>);

}  // namespace scalewise
