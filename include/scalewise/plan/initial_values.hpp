// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::inline plan {

/// The numbers of a tensor before training, one after another, from a stream of its own: they depend
/// on the seed and on the entry's name alone, not on the layout or on other tensors.
/// Equation: mean init_mean, variance init_variance · base_deviation²
/// Shapes:   rows · columns numbers, row by row
/// Units:    base_deviation is the standard deviation of the base model's tensor under a relative
///           rule, and 1 otherwise
class InitialValues {
 public:
  InitialValues(const Entry& entry, std::uint64_t seed, double base_deviation = 1)
      : stream_(seed, entry.name),
        mean_(entry.init_mean.value),
        deviation_(std::sqrt(entry.init_variance.value) * base_deviation),
        distribution_(deviation_ > 0 ? entry.distribution : Distribution::constant) {}

  double next() {
    switch (distribution_) {
      case Distribution::normal:
        return mean_ + deviation_ * stream_.normal();
      case Distribution::truncated_normal:
        return mean_ + deviation_ * stream_.truncated_normal();
      case Distribution::uniform:
        return mean_ + deviation_ * ((2 * stream_.uniform() - 1) * 1.7320508075688772);
      case Distribution::constant:
        break;
    }
    return mean_;
  }

  /// The next numbers, all at once.
  /// Shapes:   as many as the span has
  void next(std::span<double> values) {
    if (distribution_ != Distribution::normal) {
      for (double& value : values) value = next();
      return;
    }
    stream_.normals(values);
    for (double& value : values) value = mean_ + deviation_ * value;
  }

 private:
  RandomStream stream_;
  double mean_;
  double deviation_;
  Distribution distribution_;
};

}  // namespace scalewise::inline plan
