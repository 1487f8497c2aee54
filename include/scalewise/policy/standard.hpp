// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// The standard parametrization: LeCun's fan-in initialization and one rate for every tensor.
/// Equation: var W = 1/fi
/// Source:   LeCun, Bottou, Orr, Müller 1998, "Efficient BackProp", section 4.6, eq. (16).
/// Units:    init_variance is a variance; rate and decay are 1 everywhere.
/// Differs:  the source has no embeddings: a one-hot input has one active row, so its variance is 1;
///           a tied head divides the logits by √n, which gives it the same forward variance.
struct Standard {
  static constexpr std::string_view id = "standard";
  static constexpr Source source{"Efficient BackProp", "LeCun, Bottou, Orr, Müller", "1998",
                                 "Neural Networks: Tricks of the Trade", "section 4.6, eq. (16)"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    using namespace symbols;
    switch (role_of(group)) {
      case Role::input:
        if (group != Group::patch_embedding)
          return {.init_variance = 1, .source = "one active input"};
        [[fallthrough]];
      case Role::hidden:
      case Role::output:
        return {.init_variance = 1 / fi, .source = "eq. (16)"};
      case Role::input_vector:
      case Role::block_vector:
      case Role::final_vector:
      case Role::output_bias:
      case Role::rescaler:
        return vector_row(group);
    }
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const {
    return {.tied_logit_multiplier = 1 / sqrt(symbols::n), .source = "derived"};
  }
};

static_assert(Policy<Standard>);

}  // namespace scalewise
