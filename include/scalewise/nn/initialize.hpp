// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "scalewise/nn/parameters.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::nn {

/// Standard deviations of the base model, by group; a relative rule's variances are factors on them.
struct BaseDeviation {
  std::array<double, group_count> values{};

  /// The same for every group.
  static BaseDeviation uniform(double value) {
    BaseDeviation base;
    base.values.fill(value);
    return base;
  }
};

/// Draws every tensor from its planned distribution, each from a stream of its own.
/// Equation: entries with mean init_mean and variance init_variance (times the base's, if relative)
/// Requires: `base` when the plan's reference is Reference::base.
/// Throws:   InvalidInput when it is missing, and for a plan of other tensors than the parameters'.
template <class Scalar>
void initialize(Parameters<Scalar>& parameters, const Plan& plan, std::uint64_t seed,
                const std::optional<BaseDeviation>& base = {}) {
  parameters.require_plan(plan);
  const bool relative = plan.reference == Reference::base;
  if (relative && !base) {
    throw InvalidInput("base deviation", "none", "a standard deviation per group",
                       plan.rule + "'s variances are factors on the base model's");
  }
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const Entry& entry = plan.entries[i];
    RandomStream stream(seed, entry.name);
    double deviation = std::sqrt(entry.init_variance.value);
    if (relative) deviation *= base->values[static_cast<std::size_t>(entry.group)];
    View<Scalar> value = parameters.value(i);
    for (Eigen::Index r = 0; r < value.rows(); ++r) {
      for (Eigen::Index c = 0; c < value.cols(); ++c) {
        double draw = 0;
        switch (deviation > 0 ? entry.distribution : Distribution::constant) {
          case Distribution::normal:
            draw = stream.normal();
            break;
          case Distribution::truncated_normal:
            draw = stream.truncated_normal();
            break;
          case Distribution::uniform:
            draw = (2 * stream.uniform() - 1) * 1.7320508075688772;
            break;
          case Distribution::constant:
            break;
        }
        value(r, c) = static_cast<Scalar>(entry.init_mean.value + deviation * draw);
      }
    }
  }
}

}  // namespace scalewise::nn
