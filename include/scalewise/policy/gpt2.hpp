// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// GPT-2's initialization: 0.02 everywhere, residual outputs smaller with depth.
/// Equation: std 0.02; attention output and MLP down 0.02/√(2L); position embedding 0.02
/// Source:   Radford et al. 2019, section 2.3 (the 1/√N of residual layers, N = 2L); the 0.02 is
///           the released configuration's initializer_range.
/// Units:    init_variance is a variance: 0.02² = 0.0004.
/// Differs:  the 1/√(2L) is the paper's; the released code has none and draws positions with 0.01.
///           The weight decay 0 of gains and biases is the usual training recipe.
struct Gpt2 {
  static constexpr std::string_view id = "gpt2";
  static constexpr Source source{"Language Models are Unsupervised Multitask Learners",
                                 "Radford, Wu, Child, Luan, Amodei, Sutskever", "2019", "OpenAI",
                                 "section 2.3"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    using namespace symbols;
    constexpr Scaling variance = 0.0004;
    switch (role_of(group)) {
      case Role::input:
      case Role::output:
        return {.init_variance = variance, .source = "initializer_range 0.02"};
      case Role::hidden:
        if (group == Group::attention_output || group == Group::mlp_down) {
          return {.init_variance = variance / (2 * L), .source = "section 2.3"};
        }
        return {.init_variance = variance, .source = "initializer_range 0.02"};
      case Role::input_vector:
      case Role::block_vector:
      case Role::final_vector:
      case Role::output_bias:
      case Role::rescaler:
        return vector_row(group, {.weight_decay = 0});
    }
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const { return {.source = "section 2"}; }

  /// The source ties the head to the token embedding.
  constexpr Shape adapt(Shape shape) const {
    if (shape.input == Input::token && !shape.tied_head) shape.tied_head = true;
    return shape;
  }
};

static_assert(Policy<Gpt2>);

}  // namespace scalewise
