// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// νGPT: the normalized transformer with rates that transfer over width, depth and token horizon.
/// Equation: the column below; m_N = n/n0, m_L = L/L0, m_D = iterations/iterations0; the hidden and
///           output exponent is max(α, ν), the alignment exponent: 1/2 none, 3/4 mid, 1 full
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 3.1, Table 1; alignment:
///           Definitions 3.1 and 3.2.
/// Units:    rates are factors on the global rate; no weight decay; alignment is an exponent.
/// Differs:  none. `input_rate` and `output_rate` are the table's optional constants.
struct NuGpt {
  static constexpr std::string_view id = "nu-gpt";
  static constexpr Source source = detail::normalized_source("section 3.1, Table 1, column νGPT");
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{adamw};

  double alignment = 0.75;
  double input_rate = 1;   // constants tuned on the base model;
  double output_rate = 1;  // the source uses 1/2 for the output

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = pow(m_D, Exponent{-1, 3}),
        .input_rate  = input_rate / sqrt(m_N),
        .hidden_rate = pow(m_N, exponent(-alignment)),
        .output_rate = output_rate * pow(m_N, exponent(-alignment)),
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
  /// Checks the parameters.
  /// Throws:   InvalidInput for an alignment outside [1/2, 1], and a rate that is not positive.
  constexpr void validate(const Shape&) const {
    if (!(alignment >= 0.5 && alignment <= 1)) {
      throw InvalidInput("alignment", numeric::number_text(alignment),
                         "a number between 1/2 and 1");
    }
    if (!(input_rate > 0)) {
      throw InvalidInput("input_rate", numeric::number_text(input_rate), "a positive number");
    }
    if (!(output_rate > 0)) {
      throw InvalidInput("output_rate", numeric::number_text(output_rate), "a positive number");
    }
  }
  static void parameters(auto& self, auto&& visit) {
    visit("alignment", self.alignment);
    visit("input_rate", self.input_rate);
    visit("output_rate", self.output_rate);
  }
};

static_assert(Policy<NuGpt>);

}  // namespace scalewise
