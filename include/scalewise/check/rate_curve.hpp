// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// A finished run. All rates are a centre times powers of two, so that sizes share one grid.
struct RateRun {
  long size = 0;    // width, depth or steps
  long octave = 0;  // log2(rate / centre)
  long seed = 0;
  double loss = 0;  // not finite: diverged

  double rate(double centre) const { return std::ldexp(centre, static_cast<int>(octave)); }
};

/// The losses of one size.
/// Shapes:   losses (rates, seeds); row r is of octave first + r, and diverged runs are infinite
struct RateCurve {
  long size = 0;
  long first = 0;
  std::vector<std::vector<double>> losses = {};

  const std::vector<double>& at(long octave) const {
    return losses[static_cast<std::size_t>(octave - first)];
  }
};

/// The runs as one curve per size, by size.
/// Throws:   InvalidInput for a size that is not positive, an octave that no double has, a run given
///           twice, a rate that lacks a seed which another one has, or a gap between the rates of a
///           size.
inline std::vector<RateCurve> rate_curves(const std::vector<RateRun>& runs) {
  std::map<long, std::map<long, std::map<long, double>>> sorted;  // size, octave, seed
  for (const RateRun& run : runs) {
    if (run.size < 1) throw InvalidInput("size", std::to_string(run.size), "a positive size");
    if (run.octave < -1000 || run.octave > 1000) {
      throw InvalidInput("octave", std::to_string(run.octave), "a number from -1000 to 1000");
    }
    const double loss =
        std::isfinite(run.loss) ? run.loss : std::numeric_limits<double>::infinity();
    if (!sorted[run.size][run.octave].emplace(run.seed, loss).second) {
      throw InvalidInput("seed", std::to_string(run.seed),
                         "one run at size " + std::to_string(run.size) + " and octave " +
                             std::to_string(run.octave));
    }
  }
  std::vector<RateCurve> curves;
  for (const auto& [size, rates] : sorted) {
    RateCurve curve{.size = size, .first = rates.begin()->first};
    const auto& wanted = sorted.begin()->second.begin()->second;
    for (const auto& [octave, seeds] : rates) {
      const std::string where =
          "at size " + std::to_string(size) + " and octave " + std::to_string(octave);
      if (octave != curve.first + static_cast<long>(curve.losses.size())) {
        throw InvalidInput("octave", std::to_string(octave), "no gap below it", where);
      }
      std::vector<double> losses;
      bool same = seeds.size() == wanted.size();
      for (const auto& [seed, loss] : seeds) {
        same = same && wanted.count(seed) == 1;
        losses.push_back(loss);
      }
      if (!same) {
        throw InvalidInput("seeds", std::to_string(seeds.size()),
                           "the same seeds at every rate and size", where);
      }
      curve.losses.push_back(losses);
    }
    curves.push_back(curve);
  }
  return curves;
}

/// The mean loss of every rate over some of the seeds, of which one may count several times.
/// Equation: infinite where one of them diverged
inline std::vector<double> mean_losses(const RateCurve& curve,
                                       const std::vector<std::size_t>& seeds) {
  std::vector<double> means;
  for (const std::vector<double>& row : curve.losses) {
    double sum = 0;
    for (const std::size_t seed : seeds) sum += row[seed];
    means.push_back(sum / static_cast<double>(seeds.size()));
  }
  return means;
}

/// Where losses on a grid of rates are lowest.
struct Optimum {
  long lowest = 0;    // the octave of the lowest loss
  double octave = 0;  // the parabola's minimum; where none can be fitted, that of the lowest loss
  double loss = 0;    // there
  bool trained = false;   // some loss is finite
  bool interior = false;  // rates on both sides were tried
  bool fitted = false;
};

/// The minimum of the parabola through the lowest loss and its two neighbours.
/// Equation: octave = lowest + (l - r) / (2 c), loss = m - (l - r)² / (8 c), c = l - 2 m + r, for
///           the losses l, m, r
/// Accuracy: three points, because far from the optimum losses are no parabola, so that a wider
///           window would pull it to the flatter side; and because with three it stays within half
///           a step of the lowest point and is continuous where two points are equally low.
/// Differs:  beside a diverged run there is no parabola, and the lowest point itself is taken.
inline Optimum optimum(long first, const std::vector<double>& losses) {
  std::size_t i = 0;
  for (std::size_t k = 1; k < losses.size(); ++k) {
    if (losses[k] < losses[i]) i = k;
  }
  const long lowest = first + static_cast<long>(i);
  Optimum result{.lowest = lowest, .octave = static_cast<double>(lowest)};
  if (i < losses.size()) result.loss = losses[i];
  result.trained = i < losses.size() && std::isfinite(losses[i]);
  result.interior = result.trained && i > 0 && i + 1 < losses.size();
  if (!result.interior) return result;
  const double left = losses[i - 1];
  const double right = losses[i + 1];
  result.fitted = std::isfinite(left) && std::isfinite(right);
  const double curvature = left - 2 * losses[i] + right;
  if (result.fitted && curvature > 0) {
    result.octave += (left - right) / (2 * curvature);
    result.loss -= (left - right) * (left - right) / (8 * curvature);
  }
  return result;
}

}  // namespace scalewise::check
