// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/nu_gpt.hpp"

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
  static constexpr policy::TextModel text = policy::normalized_text;
  static constexpr std::array optimizers{adamw};

  double input_rate = 1;  // constants tuned on the base model, point 4 of section 3.1
  double output_rate = 1;

  /// That of νGPT with the alignment 1.
  constexpr policy::NormalizedColumn column() const {
    return NuGpt{.alignment = 1, .input_rate = input_rate, .output_rate = output_rate}.column();
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

static_assert(Policy<NuGptFullAlign>);

}  // namespace scalewise
