// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// BERT's initialization: a truncated normal of the same size everywhere.
/// Equation: std 0.02, cut at two standard deviations
/// Source:   Devlin, Chang, Lee, Toutanova 2019 (arXiv:1810.04805v2), appendix A.2; the 0.02 is the
///           released configuration's initializer_range.
/// Units:    init_variance is the variance of the parent normal: 0.02² = 0.0004; the cut makes the
///           sample's 0.774 times as large, as in the released code.
/// Differs:  none; gains and biases are not decayed, as in the released optimizer.
struct Bert {
  static constexpr std::string_view id = "bert";
  static constexpr Source source{"BERT: Pre-training of Deep Bidirectional Transformers",
                                 "Devlin, Chang, Lee, Toutanova", "2019", "arXiv:1810.04805v2",
                                 "appendix A.2"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    switch (role_of(group)) {
      case Role::input:
      case Role::hidden:
      case Role::output:
        return {.init_variance = 0.0004,
                .distribution = Distribution::truncated_normal,
                .source = "initializer_range 0.02"};
      case Role::input_vector:
      case Role::block_vector:
      case Role::final_vector:
      case Role::output_bias:
      case Role::rescaler:
        return vector_row(group, {.weight_decay = 0});
    }
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return {.source = "section 3"}; }

  /// The source ties the head to the token embedding.
  constexpr Shape adapt(Shape shape) const {
    if (shape.input == Input::token && !shape.tied_head) shape.tied_head = true;
    return shape;
  }
};

static_assert(Policy<Bert>);

}  // namespace scalewise
