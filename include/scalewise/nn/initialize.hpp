// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "scalewise/nn/parameters.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/plan/initial_values.hpp"

namespace scalewise::nn {

/// Standard deviations of the base model, by group, and of single tensors by name, where layers differ; a relative
/// rule's variances are factors on them.
struct BaseDeviation {
  std::array<double, architecture::group_count> values{};
  std::map<std::string, double> tensors = {};

  /// The deviation for an entry: that of its name, or else of its group.
  /// Units:    standard deviation
  double of(const Entry& entry) const {
    const auto found = tensors.find(entry.name);
    return found == tensors.end() ? values[static_cast<std::size_t>(entry.group)] : found->second;
  }

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
/// Throws:   InvalidInput when it is missing, for one that is negative, not finite or of a tensor that is not
///           there, and for a plan of other tensors than the parameters'.
template <class Scalar>
void initialize(Parameters<Scalar>& parameters, const Plan& plan, std::uint64_t seed,
                const std::optional<BaseDeviation>& base = {}) {
  parameters.require_plan(plan);
  const bool relative = plan.reference == Reference::base;
  if (relative && !base) {
    throw InvalidInput("base deviation", "none", "a standard deviation per group",
                       plan.rule + "'s variances are factors on the base model's");
  }
  if (relative) {
    for (const auto& [name, deviation] : base->tensors) static_cast<void>(plan.at(name));
  }
  numeric::parallel_for(static_cast<std::ptrdiff_t>(plan.entries.size()), [&](std::ptrdiff_t at) {
    const auto i = static_cast<std::size_t>(at);
    const Entry& entry = plan.entries[i];
    const double deviation = relative ? base->of(entry) : 1;
    InitialValues values(entry, seed, deviation);
    View<Scalar> value = parameters.value(i);
    constexpr Eigen::Index most = 256;
    std::array<double, most> drawn;
    for (Eigen::Index r = 0; r < value.rows(); ++r) {
      for (Eigen::Index c = 0; c < value.cols(); c += most) {
        const Eigen::Index size = (std::min)(most, value.cols() - c);
        values.next({drawn.data(), static_cast<std::size_t>(size)});
        const Eigen::Map<const Eigen::Array<double, 1, Eigen::Dynamic>> numbers(drawn.data(), size);
        value.row(r).segment(c, size).array() = numbers.template cast<Scalar>();
      }
    }
  });
}

}  // namespace scalewise::nn
