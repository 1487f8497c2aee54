// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/xavier.hpp"

namespace scalewise {

/// ReZero: one learned gain per residual branch, zero at first, and no norms in the blocks.
/// Equation: x + g f(x), g = 0
/// Source:   Bachlechner et al. 2021 (arXiv:2003.04887v2), eq. (2) and section 5.
/// Units:    the gain is a mean with variance 0; init_variance of matrices is Xavier's.
/// Differs:  the shape keeps the norms it has; the source removes them (norm_gain = norm_bias =
///           final_norm = false). The source says nothing of decay; the gains are not decayed.
struct ReZero {
  static constexpr std::string_view id = "rezero";
  static constexpr Source source{"ReZero is All You Need: Fast Convergence at Large Depth",
                                 "Bachlechner, Majumder, Mao, Cottrell, McAuley", "2021",
                                 "arXiv:2003.04887v2", "eq. (2), section 5"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group) const {
    if (group != Group::residual_gain) return Xavier{}.row(group);
    return vector_row(group, {.weight_decay = 0, .source = "eq. (2)"});
  }

  constexpr ModelRow model() const { return Xavier{}.model(); }

  constexpr Shape adapt(Shape shape) const {
    shape.residual_gain = ResidualGain::scalar;
    return shape;
  }
};

static_assert(Policy<ReZero>);

}  // namespace scalewise
