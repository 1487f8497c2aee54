// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/sweep.hpp"

namespace scalewise::check {

namespace detail {

inline double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

/// How likely a drift from a normal distribution lies more than `margin` from both tolerances.
inline double clear_of_tolerance(double mean, double deviation, double margin) {
  const auto below = [&](double drift) { return normal_below((drift - mean) / deviation); };
  const double inside = drift_tolerance - margin;
  const double outside = drift_tolerance + margin;
  const double pass = inside > 0 ? below(inside) - below(-inside) : 0;
  return pass + below(-outside) + 1 - below(outside);
}

}  // namespace detail

/// How likely a sweep with so many seeds has a verdict, estimated before any of its runs.
/// Equation: the drift d is N(0, 0.09²) or N(-0.9, 0.3²), at even odds; its interval reaches h to either
///           side, log h ~ N(log(2.4 h₀), 0.5²), h₀² = Σ w² (0.16² (smallest/size)/seeds + 0.07²), w the weight of a size
///           in the slope; the chance is that of ||d| - tolerance| > h
/// Units:    a probability
/// Measured: drifts, scatter and widths of intervals of the sweeps of docs/checks/learning_rate_transfer.md
/// Accuracy: a guess for other sizes, axes and data. Nothing is known yet of optima at the edge of the
///           rates, and of curves without a minimum.
/// Requires: sizes grow, two at least; else 0.
inline double chance_of_verdict(const std::vector<SweepSize>& sizes) {
  if (sizes.size() < 2) return 0;
  const auto octave = [](const SweepSize& s) { return std::log2(static_cast<double>(s.size)); };
  double mean = 0;
  for (const SweepSize& s : sizes) mean += octave(s) / static_cast<double>(sizes.size());
  double squares = 0;
  for (const SweepSize& s : sizes) squares += (octave(s) - mean) * (octave(s) - mean);
  double variance = 0;
  for (const SweepSize& s : sizes) {
    if (s.seeds < 2) return 0;
    const double weight = (octave(s) - mean) / squares;
    const double scatter = 0.16 * std::exp2((octave(sizes.front()) - octave(s)) / 2);
    const double curve = 0.07;  // what more seeds do not tell
    variance +=
        weight * weight * (scatter * scatter / static_cast<double>(s.seeds) + curve * curve);
  }
  // Standard normal deviates that stand for a ninth each.
  constexpr std::array<double, 9> deviates{-1.593, -0.967, -0.589, -0.282, 0,
                                           0.282,  0.589,  0.967,  1.593};
  double chance = 0;
  for (const double z : deviates) {
    const double margin = 2.4 * std::sqrt(variance) * std::exp(0.5 * z);
    chance += (detail::clear_of_tolerance(0, 0.09, margin) +
               detail::clear_of_tolerance(-0.9, 0.3, margin)) /
              18;
  }
  return chance;
}

}  // namespace scalewise::check
