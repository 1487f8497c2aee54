// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>

#include "scalewise/plan/plan.hpp"

namespace scalewise::test {

/// The problem with the numbers of an entry, or empty.
inline std::string problem(const Entry& e) {
  const auto finite = [](const auto&... numbers) { return (std::isfinite(numbers.value) && ...); };
  if (!finite(e.init_variance, e.init_mean, e.multiplier, e.learning_rate, e.weight_decay,
              e.epsilon)) {
    return "not finite";
  }
  if (!(e.init_variance.value >= 0)) return "variance below zero";
  if (!(e.learning_rate.value > 0)) return "rate not positive";
  if (!(e.weight_decay.value >= 0)) return "decay below zero";
  if (!(e.epsilon.value > 0)) return "epsilon not positive";
  if (e.multiplier.value == 0) return "multiplier zero";
  if (!(e.fan_in > 0 && e.fan_out > 0)) return "fan not positive";
  if (e.rows <= 0 || e.columns <= 0) return "no entries";
  if (architecture::is_matrix(e.group) && e.source.empty()) return "no source";
  if (e.distribution == Distribution::constant && e.init_variance.value != 0) {
    return "constant with a variance";
  }
  if (architecture::is_norm_gain(e.group) &&
      std::abs(e.init_mean.value * e.multiplier.value - 1) > 1e-14) {
    return "a norm gain that does not act as one";
  }
  return {};
}

}  // namespace scalewise::test
