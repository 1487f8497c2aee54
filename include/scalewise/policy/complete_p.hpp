// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise::inline policy {

/// CompleteP: maximal update in width, and residual branches that shrink as 1/L so that every layer
/// keeps learning features at any depth.
/// Equation: x + m_L^-α f(norm x), and the table below; m_N = n/n0, m_L = L/L0, m = fan-in ratio
/// Source:   Dey et al. 2025 (arXiv:2505.01618), Table 1, AdamW; α = 1 is CompleteP, α = 1/2 is
///           Depth-μP.
/// Units:    init_variance is a factor on the base model's variance; decay is in the coupled form.
/// Differs:  the table's m_N of hidden matrices is the fan-in ratio of each matrix; that of their
///           epsilon is √(m_fo·m_N), m_fo the fan-out ratio, the same where all widths grow alike:
///           gradients are as large as that (derived, see MaximalUpdate). Biases keep the table's
///           row, although their gradients follow the fan-out as well. Epsilon outside
///           the blocks is 1/m_N, from the gradient's size (the table covers the blocks). The
///           attention scale is √C0/C, 1/√C at the base; the paper's runs divide by n, which is
///           the same thing up to a constant for a fixed number of heads. A tied head keeps the
///           embedding's row and its multiplier 1/m_N acts on the logits; the paper unties.
struct CompleteP {
  static constexpr std::string_view id = "complete-p";
  static constexpr Source source{
      "Don't be lazy: CompleteP enables compute-efficient deep transformers",
      "Dey, Zhang, Noci, Li, Bordelon, Bergsma, Pehlevan, Hanin, Hestness", "2025",
      "arXiv:2505.01618", "Table 1"};
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{adamw};

  double alpha = 1;

  constexpr Row row(Group group) const {
    using namespace symbols;
    using enum Role;
    constexpr Scaling m = m_fi;
    const Scaling depth = pow(m_L, exponent(alpha) - 1);
    const Scaling eps = 1 / (m_N * pow(m_L, exponent(alpha)));
    const Scaling matrix_eps = eps * sqrt(m_N / m_fo);
    const auto vector = [&](const Row& row) { return vector_row(group, row); };
    // clang-format off
    switch (role_of(group)) {
      case input:        return {.init_variance = 1, .rates = {{adamw, 1}}, .weight_decay = 1, .epsilon = 1 / m_N,
                                 .source = "Table 1, embedding"};
      case hidden:       return {.init_variance = 1 / m, .rates = {{adamw, depth / m}}, .weight_decay = m, .epsilon = matrix_eps,
                                 .source = "Table 1, hidden weights"};
      case block_vector: return vector({.rates = {{adamw, depth}}, .weight_decay = 0, .epsilon = eps,
                                 .source = "Table 1, pre-LN and hidden biases"});
      case final_vector: return vector({.rates = {{adamw, 1}}, .weight_decay = 0, .epsilon = 1 / m_N,
                                 .source = "Table 1, final LN"});
      case output:       return {.init_variance = 1, .multiplier = 1 / m, .rates = {{adamw, 1}}, .weight_decay = 1,
                                 .epsilon = 1 / m_N, .source = "Table 1, unembedding"};
      case input_vector: return vector({.weight_decay = 0, .epsilon = 1 / m_N, .source = "derived, as final LN"});
      case output_bias:
      case rescaler:     return vector({.weight_decay = 0, .source = "derived"});
    }
    // clang-format on
    return {};
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.attention_scale = 1 / (sqrt(C) * sqrt(m_C)),
            .residual_skip = 1,
            .residual_branch = pow(m_L, exponent(-alpha)),
            .tied_logit_multiplier = 1 / m_N,
            .source = "Table 1"};
  }

  constexpr void validate(const Shape&) const {
    if (!(alpha >= 0.5 && alpha <= 1)) {
      throw InvalidInput("alpha", number_text(alpha), "a number between 1/2 and 1");
    }
  }

  static void parameters(auto& self, auto&& visit) { visit("alpha", self.alpha); }
};

static_assert(Policy<CompleteP>);

}  // namespace scalewise::inline policy
