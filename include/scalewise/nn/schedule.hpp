// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

namespace scalewise::nn {

/// The shape of the schedule after the warm-up.
enum class Decline { constant, linear, cosine };

/// Factor on the peak rate as a function of the step.
/// Equation: (step+1)/warmup during the warm-up; then with u = (step-warmup)/(steps-warmup):
///           constant 1, linear 1 - (1-floor) u, cosine floor + (1-floor)(1 + cos πu)/2
/// Requires: steps > warmup >= 0; after `steps` the factor stays at its last value.
struct Schedule {
  long steps = 1;
  long warmup = 0;
  Decline decline = Decline::constant;
  double floor = 0;  // last factor, over the peak's

  /// The factor of a step, the first of which is 0.
  /// Units:    a factor on the peak rate
  double factor(long step) const {
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    const long last = steps > warmup ? steps - warmup : 1;
    const double u =
        step >= steps ? 1 : static_cast<double>(step - warmup) / static_cast<double>(last);
    switch (decline) {
      case Decline::constant:
        return 1;
      case Decline::linear:
        return 1 - (1 - floor) * u;
      case Decline::cosine:
        return floor + (1 - floor) * (1 + std::cos(3.14159265358979323846 * u)) / 2;
    }
    return 1;
  }
};

}  // namespace scalewise::nn
