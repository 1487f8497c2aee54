// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/policy/policy.hpp"

namespace scalewise {

/// LayerScale: a learned gain per channel on every residual branch, small at first.
/// Equation: x + diag(g) f(x), g = 0.1 up to 18 layers, 1e-5 up to 24, 1e-6 beyond
/// Source:   Touvron et al. 2021 (arXiv:2103.17239v2), section 2, eq. (4); everything but the gain
///           from the released code, facebookresearch/deit, cait_models.py.
/// Units:    the gain is a mean with variance 0; init_variance of matrices is 0.02².
/// Differs:  the source names depths 18, 24 and more; 19 to 23 layers are taken with 24. The code
///           cuts its normal at ±2, which is a hundred standard deviations and so no cut. Token and
///           segment embeddings and relative positions are derived: its models have none.
struct LayerScale {
  static constexpr std::string_view id = "layer-scale";
  static constexpr Source source{"Going deeper with Image Transformers",
                                 "Touvron, Cord, Sablayrolles, Synnaeve, Jégou", "2021",
                                 "arXiv:2103.17239v2", "section 2"};
  static constexpr Reference reference = Reference::absolute;
  static constexpr std::array optimizers{sgd, adamw};

  constexpr Row row(Group group, const policy::Context& context) const {
    using symbols::fi;
    constexpr double variance = 0.0004;
    switch (group) {
      case Group::patch_embedding:
      case Group::patch_bias:  // a convolution, which the code leaves as nn.Conv2d makes it
        return {.init_variance = 1 / (3 * fi),
                .weight_decay = group == Group::patch_embedding ? 1 : 0,
                .distribution = Distribution::uniform,
                .source = "nn.Conv2d"};
      case Group::position_embedding:
      case Group::class_token:
        return {.init_variance = variance, .weight_decay = 0, .source = "std .02, no_weight_decay"};
      case Group::segment_embedding:
        return {.init_variance = variance, .weight_decay = 0, .source = "derived, as position"};
      case Group::token_embedding:
        return {.init_variance = variance, .source = "derived, as nn.Linear"};
      case Group::residual_gain: {
        const long depth = context.depth();
        return {.init_mean = depth <= 18   ? 0.1
                             : depth <= 24 ? 1e-5
                                           : 1e-6,
                .weight_decay = 0,
                .distribution = Distribution::constant,
                .source = "section 2"};
      }
      default:
        break;
    }
    if (!architecture::reads_width(group)) return vector_row(group, {.weight_decay = 0});
    return {.init_variance = variance, .source = "nn.Linear, std .02"};
  }

  constexpr ModelRow model() const { return {.source = "eq. (4)"}; }

  constexpr Shape adapt(Shape shape) const {
    shape.residual_gain = ResidualGain::channel;
    return shape;
  }
};

static_assert(Policy<LayerScale>);

}  // namespace scalewise
