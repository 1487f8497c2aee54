// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise {

namespace detail {

inline void require_base_deviation(double base_deviation) {
  if (base_deviation >= 0 && std::isfinite(base_deviation)) return;
  throw InvalidInput("base_deviation", numeric::number_text(base_deviation),
                     "a finite number, 0 or greater");
}

}  // namespace detail

/// The numbers of a tensor before training, one after another, from a stream of its own: they depend
/// on the seed and on the entry's name alone, not on the layout or on other tensors.
/// Equation: mean init_mean, variance init_variance · base_deviation²
/// Shapes:   rows · columns numbers, row by row
/// Units:    base_deviation is the standard deviation of the base model's tensor under a relative
///           rule, and 1 otherwise
/// Throws:   InvalidInput for a base_deviation, or a planned variance, that is negative or not finite, and for a tensor
///           whose initial values are the model's own.
class InitialValues {
 public:
  InitialValues(const Entry& entry, std::uint64_t seed, double base_deviation = 1)
      : stream_(seed, entry.name),
        mean_(entry.init_mean.value),
        deviation_(deviation_of(entry, base_deviation)),
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
      case Distribution::own:
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
  static double deviation_of(const Entry& entry, double base_deviation) {
    detail::require_base_deviation(base_deviation);
    if (entry.distribution == Distribution::own) {
      throw InvalidInput(entry.name, "own", "a tensor that the plan initializes");
    }
    const double variance = entry.init_variance.value;
    if (!(variance >= 0 && std::isfinite(variance))) {
      throw InvalidInput(entry.name + ".init_variance", numeric::number_text(variance),
                         "a finite number, 0 or greater");
    }
    return std::sqrt(variance) * base_deviation;
  }

  numeric::RandomStream stream_;
  double mean_;
  double deviation_;
  Distribution distribution_;
};

}  // namespace scalewise
