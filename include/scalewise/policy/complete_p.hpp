// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/experts.hpp"
#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// CompleteP: maximal update in width, and residual branches that shrink with the depth so that every
/// layer keeps learning features at any depth.
/// Equation: x + m_L^-α f(norm x), and the table below; n width, L layers, C size of a head, each over
///           the base model's: m_N = n/n0, m_L = L/L0, m_C = C/C0; m_fi and m_fo of a matrix's own fans
/// Source:   Dey et al. 2025 (arXiv:2505.01618), Table 1, AdamW; α = 1 is CompleteP, α = 1/2 is
///           Depth-μP (struct DepthMup).
/// Units:    init_variance is a factor on the base model's variance; decay is in the coupled form (rate
///           times decay, as PyTorch's AdamW). What a row leaves out is 1, a variance or mean 0.
/// Differs:  For a hidden matrix the table's m_N becomes its fan-in ratio, except in epsilon, where it
///           becomes √(m_fo·m_N), as the entries of its gradient shrink: they come back through weights
///           of variance 1/m_fo, as a sum of m_N terms of size 1/m_N (docs/rules/maximal-update.md).
///           Both are m_N where all widths grow alike. Biases keep the table's epsilon, although
///           their gradients follow the fan-out as well. The paper gives epsilon for the blocks alone;
///           outside of them it is 1/m_N as in the public code, which is how the gradient shrinks, but 1 for
///           the head's bias, whose gradient does not. Factors of the depth are those of what stands in the layers: a
///           router's too, and no hidden matrix's outside of them. Rescalers, the learned scales of nGPT, are in no model that this
///           rule is for. The attention scale is √C0/C, 1/√C at the base; the public code divides by C, which
///           is the same up to a constant. The paper does not tie the
///           head; a tied one keeps the embedding's row, and its multiplier 1/m_N acts on the logits.
struct CompleteP {
  static constexpr std::string_view id = "complete-p";
  static constexpr Source source{
      "Don't be lazy: CompleteP enables compute-efficient deep transformers",
      "Dey, Zhang, Noci, Li, Bordelon, Bergsma, Pehlevan, Hanin, Hestness", "2025",
      "arXiv:2505.01618", "Table 1"};
  static constexpr Reference reference = Reference::base;
  static constexpr std::array optimizers{adamw};

  double alpha = 1;
  policy::Experts experts = {};

  constexpr Row row(Group group, const policy::Context& context = {}) const {
    return experts.row(group, context,
                       [&](Group of) { return row_by_role(of, context.is_in_layers(of)); });
  }

  constexpr Row row_by_role(Group group, bool in_layers) const {
    using namespace symbols;
    using enum Role;
    const Exponent a = exponent(alpha);  // an exact fraction: 0.6 is 3/5
    const Scaling layers = in_layers ? Scaling(m_L) : 1;
    const Scaling rate = pow(layers, a - 1);
    const Scaling eps = 1 / (m_N * pow(layers, a));
    const Scaling matrix_eps = 1 / (sqrt(m_fo * m_N) * pow(layers, a));
    // role_of(): which sides of the tensors of this group grow; vector_row(): norm gains start at 1, the rest at 0.
    // clang-format off
    switch (role_of(group)) {
      case input:        return {.init_variance = 1, .rates = {{adamw, rate}}, .weight_decay = 1, .epsilon = eps,
                                 .source = "Table 1, embedding"};
      case hidden:       return {.init_variance = 1 / m_fi, .rates = {{adamw, rate / m_fi}}, .weight_decay = m_fi, .epsilon = matrix_eps,
                                 .source = "Table 1, hidden weights"};
      case block_vector: return vector_row(group, {.rates = {{adamw, rate}}, .weight_decay = 0, .epsilon = eps,
                                 .source = "Table 1, pre-LN and hidden biases"});
      case final_vector: return vector_row(group, {.rates = {{adamw, 1}}, .weight_decay = 0, .epsilon = 1 / m_N,
                                 .source = "Table 1, final LN"});
      case output:       return {.init_variance = 1, .multiplier = 1 / m_fi, .rates = {{adamw, rate}}, .weight_decay = 1,
                                 .epsilon = eps, .source = "Table 1, unembedding"};
      case input_vector: return vector_row(group, {.rates = {{adamw, 1}}, .weight_decay = 0, .epsilon = 1 / m_N,
                                 .source = "derived, as final LN"});  // gains and biases next to embeddings
      case output_bias:
      case rescaler:     return vector_row(group, {.rates = {{adamw, 1}}, .weight_decay = 0,
                                 .source = "derived"});
    }
    // clang-format on
    return not_stated();  // no group is left
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.attention_scale = 1 / (sqrt(C) * sqrt(m_C)),
            .residual_skip = 1,
            .residual_branch = pow(m_L, exponent(-alpha)),
            .tied_logit_multiplier = 1 / m_N,
            .source = "Table 1"};
  }

  /// Checks the parameters.
  /// Throws:   InvalidInput for an α outside [1/2, 1], and as Experts::validate().
  constexpr void validate(const Shape&) const {
    experts.validate();
    if (!(alpha >= 0.5 && alpha <= 1)) {
      throw InvalidInput("alpha", numeric::number_text(alpha), "a number between 1/2 and 1");
    }
  }

  /// The parameters that files and command lines can set by name.
  static void parameters(auto& self, auto&& visit) {
    visit("alpha", self.alpha);
    policy::Experts::parameters(self.experts, visit);
  }
};

static_assert(Policy<CompleteP>);

}  // namespace scalewise
