// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/xavier.hpp"

namespace scalewise {

/// DeepNorm: a heavier skip and smaller branch weights for very deep post-norm transformers.
/// Equation: LN(α x + f(x)); Xavier with gain β on value, output, up and down, gain 1 on query, key;
///           one stack of L layers: α = (2L)^(1/4), β = (8L)^(-1/4);
///           encoder N_e, decoder N_d: encoder α = 0.81 (N_e⁴ N_d)^(1/16), β = 0.87 (N_e⁴ N_d)^(-1/16),
///           decoder α = (3 N_d)^(1/4), β = (12 N_d)^(-1/4)
/// Source:   Wang et al. 2022 (arXiv:2203.00555v1), Figure 2.
/// Units:    init_variance is a variance: β² times Xavier's 2/(fi+fo).
/// Differs:  the rule is for post-norm, where LN follows the sum; the shape keeps the norms it has.
///           The gate of a gated MLP has the gain of MLP up (derived); embeddings as Xavier.
struct DeepNorm {
  static constexpr std::string_view id = "deep-norm";
  static constexpr Source source{"DeepNet: Scaling Transformers to 1,000 Layers",
                                 "Wang, Ma, Dong, Huang, Zhang, Wei", "2022", "arXiv:2203.00555v1",
                                 "Figure 2"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr policy::TextModel text{.placement = NormPlacement::post};
  static constexpr std::array optimizers{sgd, adamw};

  struct Gains {
    Scaling alpha;
    Scaling beta;
  };

  static constexpr Gains gains(Stack stack) {
    using symbols::L;
    constexpr Scaling N_e = symbols::encoder_depth;
    constexpr Scaling N_d = symbols::decoder_depth;
    // clang-format off
    switch (stack) {
      case Stack::encoder: return {0.81 * pow(pow(N_e, Exponent(4)) * N_d, Exponent{1, 16}), 0.87 * pow(pow(N_e, Exponent(4)) * N_d, Exponent{-1, 16})};
      case Stack::decoder: return {pow(3 * N_d, Exponent{1, 4}),                   pow(12 * N_d, Exponent{-1, 4})};
      case Stack::main:
      case Stack::none:    return {pow(2 * L, Exponent{1, 4}),                     pow(8 * L, Exponent{-1, 4})};
    }
    // clang-format on
    return {};
  }

  constexpr Row row(Group group, const policy::Context& context) const {
    Row row = Xavier{}.row(group);
    if (role_of(group) == Role::hidden) row.distribution = Distribution::normal;
    switch (group) {
      case Group::value:
      case Group::attention_output:
      case Group::mlp_up:
      case Group::mlp_gate:
      case Group::mlp_down: {
        const Scaling beta = gains(context.stack).beta;
        row.init_variance = beta * beta * row.init_variance.scaling;
        row.source = "Figure 2, gain β";
        return row;
      }
      default:
        return row;
    }
  }

  constexpr ModelRow model(const policy::Context& context) const {
    return {.residual_skip = gains(context.stack).alpha, .source = "Figure 2"};
  }
};

static_assert(Policy<DeepNorm>);

}  // namespace scalewise
