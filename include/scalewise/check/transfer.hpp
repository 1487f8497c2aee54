// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/numeric/line.hpp"

namespace scalewise::check {

/// A number with its 95 % interval, which is infinite where one seed cannot tell.
struct IntervalEstimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// What one size says about its best rate, and about the rate that was tuned at the smallest size.
/// Units:    rates in octaves from the grid's centre; losses and regret as the runs' losses
struct SizeTransfer {
  long size = 0;
  bool trained = false;   // some rate has a finite loss
  bool interior = false;  // the lowest loss has rates on both sides of it
  IntervalEstimate optimum = {};
  double optimum_loss = 0;
  long best = 0;            // the measured rate of lowest mean loss
  double loss = 0;          // there
  long transferred = 0;     // the measured rate next to the one that the smallest size proposes
  double regret = 0;        // loss there minus loss at the best one; infinite: a run diverged
  double regret_error = 0;  // standard error, over paired seeds
};

/// How the optimal rate moves with size.
/// Units:    drift in octaves of rate per octave of size
struct Transfer {
  double expected = 0;
  std::size_t seeds = 0;
  std::vector<SizeTransfer> sizes;
  IntervalEstimate drift;
};

namespace detail {

/// Random numbers that are the same everywhere.
/// Source:   SplitMix64 (Steele, Lea, Flood 2014).
class ResampleStream {
 public:
  std::uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  double uniform() { return static_cast<double>(bits() >> 11U) * 0x1p-53; }

 private:
  std::uint64_t state_ = 0;
};

/// Sums that a standard deviation needs.
struct SampleScatter {
  double count = 0;
  double mean = 0;
  double squares = 0;  // of deviations from the mean
  void add(double value) {
    count += 1;
    const double before = value - mean;
    mean += before / count;
    squares += before * (value - mean);
  }
};

/// The interval of an estimate from its values over resampled seeds.
inline IntervalEstimate with_interval(double value, const SampleScatter& resampled,
                                      std::size_t seeds) {
  const auto n = static_cast<double>(seeds);
  const double infinite = std::numeric_limits<double>::infinity();
  const double half = seeds < 2 ? infinite
                                : t_quantile(seeds - 1) * std::sqrt(n / (n - 1)) *
                                      std::sqrt(resampled.squares / resampled.count);
  return {value, value - half, value + half};
}

/// Best and transferred rate of one size, and what the difference costs.
inline void add_regret(const RateCurve& curve, double proposed, SizeTransfer& result) {
  const double last =
      static_cast<double>(curve.first) + static_cast<double>(curve.losses.size()) - 1;
  const double nearest = std::fmin(std::fmax(std::floor(proposed + 0.5), curve.first), last);
  result.transferred = static_cast<long>(nearest);
  if (!result.trained) return;
  const std::vector<double>& there = curve.at(result.transferred);
  const std::vector<double>& best = curve.at(result.best);
  SampleScatter difference;
  for (std::size_t s = 0; s < there.size(); ++s) {
    if (!std::isfinite(there[s])) {
      result.regret = std::numeric_limits<double>::infinity();
      return;
    }
    difference.add(there[s] - best[s]);
  }
  const double n = difference.count;
  result.regret = difference.mean;
  result.regret_error = n < 2 ? 0 : std::sqrt(difference.squares / (n - 1) / n);
}

}  // namespace detail

/// The optimal rate of each size, its drift, and the regret of a rate tuned at the smallest size.
/// Equation: optimum as optimum() has it, of the mean over seeds; drift: slope of the optimum
///           against log2(size) by least squares; interval: value ± t √(S/(S-1)) times the standard
///           deviation over 1000 resamples of the S seeds, the same seeds at every rate and size,
///           with t Student's 97.5 % quantile at S-1; regret: mean loss at the measured rate next
///           to (smallest size's optimum + expected × octaves of size) minus that at the best one
/// Source:   Hesterberg 2014 (arXiv:1411.5279) on few samples: the bootstrap's standard error is
///           too small by √((S-1)/S), and an interval from it needs t instead of z.
/// Accuracy: resamples come from a fixed stream, so the intervals are the same in every run. The
///           interval has the scatter of seeds in it, not the parabola's misfit.
/// Throws:   InvalidInput for runs that rate_curves() refuses.
inline Transfer analyse_transfer(const std::vector<RateRun>& runs, double expected = 0) {
  const std::vector<RateCurve> curves = rate_curves(runs);
  Transfer result;
  result.expected = expected;
  if (curves.empty()) return result;
  const std::size_t seeds = curves.front().losses.front().size();
  result.seeds = seeds;
  std::vector<double> octaves;
  std::vector<double> optima;
  std::vector<std::size_t> all(seeds);
  for (std::size_t s = 0; s < seeds; ++s) all[s] = s;
  for (const RateCurve& curve : curves) {
    octaves.push_back(std::log2(static_cast<double>(curve.size)));
    const std::vector<double> means = mean_losses(curve, all);
    const Optimum found = optimum(curve.first, means);
    optima.push_back(found.octave);
    SizeTransfer size{.size = curve.size,
                      .trained = found.trained,
                      .interior = found.interior,
                      .optimum_loss = found.loss,
                      .best = found.lowest};
    size.loss = means[static_cast<std::size_t>(found.lowest - curve.first)];
    const double proposed = optima.front() + expected * (octaves.back() - octaves.front());
    detail::add_regret(curve, proposed, size);
    result.sizes.push_back(size);
  }

  constexpr int resamples = 1000;
  detail::ResampleStream draws;
  detail::SampleScatter drift;
  std::vector<detail::SampleScatter> scatter(curves.size());
  std::vector<std::size_t> drawn(seeds);
  std::vector<double> resampled(curves.size());
  for (int i = 0; i < resamples; ++i) {
    for (std::size_t& s : drawn) s = draws.bits() % seeds;
    for (std::size_t c = 0; c < curves.size(); ++c) {
      const Optimum found = optimum(curves[c].first, mean_losses(curves[c], drawn));
      // Where a neighbour diverged the optimum is known to half a step of the grid only.
      const double unknown = found.fitted ? 0 : draws.uniform() - 0.5;
      resampled[c] = found.octave + unknown;
      scatter[c].add(resampled[c]);
    }
    drift.add(fit_line(octaves, resampled).slope);
  }
  for (std::size_t c = 0; c < curves.size(); ++c) {
    result.sizes[c].optimum = detail::with_interval(optima[c], scatter[c], seeds);
  }
  result.drift = detail::with_interval(fit_line(octaves, optima).slope, drift, seeds);
  return result;
}

}  // namespace scalewise::check
