// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/neural_tangent.hpp"

namespace scalewise {

/// Meta-principled scaling: the family between neural-tangent (s = 0) and maximal-update (s = 1).
/// Equation: head variance C/n^(1+s), tied logits times n^(-(1+s)/2); rates of all groups but the
///           head times n^s (SGD) or n^(s/2) (AdamW); everything else as NeuralTangent
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034v1), eq. (1.34) with footnotes 8 and 26;
///           the family is Yaida's (arXiv:2210.04909v1).
/// Units:    s is an exponent between 0 and 1.
/// Differs:  as NeuralTangent.
struct MetaPrincipled {
  static constexpr std::string_view id = "meta-principled";
  static constexpr Source source{"Effective Theory of Transformers at Initialization",
                                 "Dinan, Yaida, Zhang", "2023", "arXiv:2304.02034v1",
                                 "eq. (1.34), footnotes 8 and 26"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  double s = 0.5;
  NeuralTangent neural_tangent{};

  constexpr Row row(Group group, const policy::Context& context = {}) const {
    using namespace symbols;
    Row row = neural_tangent.row(group, context);
    if (group == Group::head) {
      row.init_variance = row.init_variance.scaling / pow(n, exponent(s));
    } else if (group != Group::head_bias) {
      const Scaling half = pow(n, exponent(s) * Exponent(1, 2));
      row.rates = {{sgd, row.rate(sgd).scaling * pow(n, exponent(s))},
                   {adamw, row.rate(adamw).scaling * half}};
      row.epsilon = row.epsilon.scaling / half;
    }
    return row;
  }

  constexpr ModelRow model() const {
    using namespace symbols;
    return {.attention_scale = 1 / sqrt(C),
            .tied_logit_multiplier = pow(n, -(exponent(s) + 1) * Exponent(1, 2)),
            .source = "eq. (1.34)"};
  }

  constexpr Shape adapt(Shape shape) const { return neural_tangent.adapt(shape); }

  /// Checks the parameters.
  /// Throws:   InvalidInput for an s outside [0, 1], and constants that NeuralTangent refuses.
  constexpr void validate(const Shape& shape) const {
    neural_tangent.validate(shape);
    if (!(s >= 0 && s <= 1)) {
      throw InvalidInput("s", numeric::number_text(s), "a number between 0 and 1",
                         "0 is neural-tangent, 1 is maximal-update");
    }
  }

  static void parameters(auto& self, auto&& visit) {
    visit("s", self.s);
    NeuralTangent::parameters(self.neural_tangent, visit);
  }
};

static_assert(Policy<MetaPrincipled>);

}  // namespace scalewise
