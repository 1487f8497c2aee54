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
  static constexpr std::array optimizers{adamw};

  constexpr policy::NormalizedColumn column() const {
    using namespace symbols;
    // clang-format off
    return {
        .base_rate   = 1,
        .input_rate  = 1,
        .hidden_rate = 1,
        .output_rate = 1,
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
};

static_assert(Policy<NGpt>);

}  // namespace scalewise
