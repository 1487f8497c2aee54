// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/he.hpp"

namespace scalewise {

/// SkipInit: a learned scalar at the end of every residual branch, zero at first, in place of
/// normalization.
/// Equation: x + g f(x), g = 0
/// Source:   De, Smith 2020 (arXiv:2002.10444v3), section 4, with He's initialization as there.
/// Units:    the gain is a mean with variance 0; init_variance of matrices is He's 2/fi.
/// Differs:  proposed for residual convolutional networks; the shape keeps the norms it has. The
///           source says nothing of decay; the gains are not decayed.
struct SkipInit {
  static constexpr std::string_view id = "skip-init";
  static constexpr Source source{
      "Batch Normalization Biases Residual Blocks Towards the Identity Function in Deep Networks",
      "De, Smith", "2020", "arXiv:2002.10444v3", "section 4"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    if (group != Group::residual_gain) return He{}.row(group);
    return vector_row(group, {.weight_decay = 0, .source = "section 4"});
  }

  constexpr ModelRow model() const { return He{}.model(); }

  constexpr Shape adapt(Shape shape) const {
    shape.residual_gain = ResidualGain::scalar;
    return shape;
  }
};

static_assert(Policy<SkipInit>);

}  // namespace scalewise
