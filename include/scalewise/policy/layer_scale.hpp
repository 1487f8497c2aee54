// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/bert.hpp"

namespace scalewise {

/// LayerScale: a learned gain per channel on every residual branch, small at first.
/// Equation: x + diag(g) f(x), g = 0.1 up to 18 layers, 1e-5 up to 24, 1e-6 beyond
/// Source:   Touvron et al. 2021 (arXiv:2103.17239v2), section 2, eq. (4).
/// Units:    the gain is a mean with variance 0; init_variance of matrices is 0.02².
/// Differs:  the source names depths 18, 24 and more; 19 to 23 layers are taken with 24. Matrices as
///           BERT, which is what the released code uses.
struct LayerScale {
  static constexpr std::string_view id = "layer-scale";
  static constexpr Source source{"Going deeper with Image Transformers",
                                 "Touvron, Cord, Sablayrolles, Synnaeve, Jégou", "2021",
                                 "arXiv:2103.17239v2", "section 2"};
  static constexpr Reference reference = Reference::absolute;

  constexpr Rule rule(Group group, const Context& context) const {
    if (group != Group::residual_gain) return Bert{}.rule(group);
    const long depth = context.depth();
    const double gain = depth <= 18 ? 0.1 : depth <= 24 ? 1e-5 : 1e-6;
    return {.init_mean = gain,
            .weight_decay = 0,
            .distribution = Distribution::constant,
            .source = "section 2"};
  }

  constexpr ModelRule model() const { return {.source = "eq. (4)"}; }

  constexpr Shape adapt(Shape shape) const {
    shape.residual_gain = ResidualGain::channel;
    return shape;
  }
};

static_assert(Policy<LayerScale>);

}  // namespace scalewise
