// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/normalized.hpp"

namespace scalewise {

/// nGPT: the normalized transformer as published, with one rate for every tensor.
/// Equation: the column below; rescalers are stored at 1/√n
/// Source:   Loshchilov, Hsieh, Sun, Ginsburg 2025 (arXiv:2410.01131); read as column "nGPT" of
///           Table 1 of Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2).
/// Units:    rates are factors on the global rate; no weight decay.
/// Differs:  none; the released code normalizes after each step, which comes to the same.
struct NGpt {
  static constexpr std::string_view id = "ngpt";
  static constexpr Source source = detail::normalized_source("Table 1, column nGPT");
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
        .input_rate  = input_rate,
        .hidden_rate = 1,
        .output_rate = output_rate,
        .step_init   = 0.05,
        .scale       = 1 / sqrt(n),
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

static_assert(Policy<NGpt>);

}  // namespace scalewise
