// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// νGPT: the normalized transformer with rates that transfer over width, depth and token horizon.
/// Equation: the column below; m_N = n/n0, m_L = L/L0, m_D = iterations/iterations0; the hidden and
///           output exponents are each max(α, ν), the alignment exponent: 1/2 none, 3/4 mid, 1 full
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 3.1, Table 1; alignment:
///           Definitions 3.1 and 3.2, section 4.3; other depth exponents: eqs. (10), (11).
/// Units:    rates are factors on the global rate; no weight decay; alignment is an exponent.
/// Differs:  none. `input_rate` and `output_rate` are the table's optional constants.
struct NuGpt {
  static constexpr std::string_view id = "nu-gpt";
  static constexpr Source source = detail::normalized_source("section 3.1, Table 1, column νGPT");
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text = policy::normalized_text;
  static constexpr std::array optimizers{adamw};

  double alignment = 0.75;
  double hidden_alignment = 0;  // 0: that above
  double output_alignment = 0;
  double input_rate = 1;      // constants tuned on the base model;
  double output_rate = 1;     // the source uses 1/2 for the output
  double depth_exponent = 1;  // α_depth of eqs. (10) and (11)
  double horizon_exponent = 1.0 / 3;

  constexpr double of_hidden() const {
    return hidden_alignment == 0 ? alignment : hidden_alignment;
  }
  constexpr double of_output() const {
    return output_alignment == 0 ? alignment : output_alignment;
  }

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = pow(m_D, -exponent(horizon_exponent)),
        .input_rate  = input_rate / sqrt(m_N),
        .hidden_rate = pow(m_N, -exponent(of_hidden())) * pow(m_L, exponent(depth_exponent) - 1),
        .output_rate = output_rate * pow(m_N, -exponent(of_output())),
        .step_init   = 0.05 * pow(m_L, -exponent(depth_exponent)),
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
  /// Checks the parameters.
  /// Throws:   InvalidInput for an alignment outside [1/2, 1], a rate that is not positive, and an exponent
  ///           outside [0, 1].
  constexpr void validate(const Shape&) const {
    policy::require_between("alignment", alignment, 0.5, 1);
    policy::require_between("hidden_alignment", of_hidden(), 0.5, 1);
    policy::require_between("output_alignment", of_output(), 0.5, 1);
    policy::require_end_rates(input_rate, output_rate);
    policy::require_between("depth_exponent", depth_exponent, 0, 1);
    policy::require_between("horizon_exponent", horizon_exponent, 0, 1);
  }
  static void parameters(auto& self, auto&& visit) {
    visit("alignment", self.alignment);
    visit("hidden_alignment", self.hidden_alignment);
    visit("output_alignment", self.output_alignment);
    visit("input_rate", self.input_rate);
    visit("output_rate", self.output_rate);
    visit("depth_exponent", self.depth_exponent);
    visit("horizon_exponent", self.horizon_exponent);
  }
};

static_assert(Policy<NuGpt>);

}  // namespace scalewise
