// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "scalewise/check/rate_curve.hpp"

namespace scalewise::check {

/// A run that is still to be made.
struct SweepTask {
  long size = 0;
  long octave = 0;
  long seed = 0;
};

/// How far a sweep over rates has come.
struct Sweep {
  std::vector<SweepTask> missing;  // empty: done
  std::vector<RateRun> runs;       // the finished ones that count, by size, rate and seed
};

inline constexpr long first_octaves = 2;  // the grid begins with these many on either side
inline constexpr long most_octaves = 12;  // and ends here, a factor of 4096 from its centre

namespace detail {

/// The rates of one size, as far as they are finished.
class SizeSweep {
 public:
  using Losses = std::map<std::tuple<long, long, long>, double>;  // by size, octave, seed

  SizeSweep(long size, long seeds, const Losses& losses)
      : size_(size), seeds_(seeds), losses_(losses) {}

  /// Extends the range until every optimum in it is interior or a run is missing.
  void extend() {
    while (missing().empty()) {
      const auto [below, above] = edges();
      const bool down = below && low_ > -most_octaves;
      const bool up = above && high_ < most_octaves;
      if (!down && !up) return;
      low_ -= down ? 1 : 0;
      high_ += up ? 1 : 0;
    }
  }

  void include(long octave) {
    if (octave < low_) low_ = octave;
    if (octave > high_) high_ = octave;
  }

  std::vector<SweepTask> missing() const {
    std::vector<SweepTask> tasks;
    for (long octave = low_; octave <= high_; ++octave) {
      for (long seed = 1; seed <= seeds_; ++seed) {
        if (losses_.count({size_, octave, seed}) == 0) tasks.push_back({size_, octave, seed});
      }
    }
    return tasks;
  }

  /// Requires: nothing is missing.
  long lowest() const { return optimum(low_, means()).lowest; }

  std::vector<RateRun> finished() const {
    std::vector<RateRun> runs;
    for (auto run = losses_.lower_bound({size_, low_, 1}); run != losses_.end(); ++run) {
      const auto [size, octave, seed] = run->first;
      if (size != size_ || octave > high_) break;
      if (seed >= 1 && seed <= seeds_) runs.push_back({size, octave, seed, run->second});
    }
    return runs;
  }

 private:
  /// On which sides the mean over seeds, or one of them, is lowest at the last rate; below when all
  /// diverged.
  std::pair<bool, bool> edges() const {
    std::vector<std::vector<double>> curves{means()};
    for (long seed = 1; seed <= seeds_; ++seed) curves.push_back(of_seed(seed));
    std::pair<bool, bool> found{false, false};
    for (const std::vector<double>& curve : curves) {
      const long octave = optimum(low_, curve).lowest;
      found.first = found.first || octave == low_;
      found.second = found.second || octave == high_;
    }
    return found;
  }

  std::vector<double> of_seed(long seed) const {
    std::vector<double> curve;
    for (long octave = low_; octave <= high_; ++octave) {
      curve.push_back(losses_.at({size_, octave, seed}));
    }
    return curve;
  }

  std::vector<double> means() const {
    std::vector<double> sum(static_cast<std::size_t>(high_ - low_ + 1));
    for (long seed = 1; seed <= seeds_; ++seed) {
      const std::vector<double> curve = of_seed(seed);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += curve[i] / static_cast<double>(seeds_);
    }
    return sum;
  }

  long size_;
  long seeds_;
  const Losses& losses_;
  long low_ = -first_octaves;
  long high_ = first_octaves;
};

}  // namespace detail

/// What a sweep over rates, sizes and seeds 1 … `seeds` still needs.
/// Equation: each size begins with five rates, a factor of 2 apart, and gets one more at a side
///           while the mean over seeds, or a seed alone, is lowest there, or below while all
///           diverge; then every size gets the best rate of the first one, so that its regret is
///           measured
/// Requires: sizes grow; a run is finished once, its loss not finite if it diverged.
/// Accuracy: a function of the finished runs, whatever their order: a sweep that was stopped goes
///           on as if it had not been. Runs of other sizes or seeds do no harm.
inline Sweep sweep(const std::vector<long>& sizes, long seeds,
                   const std::vector<RateRun>& finished) {
  detail::SizeSweep::Losses losses;
  for (const RateRun& run : finished) {
    const bool good = std::isfinite(run.loss);
    losses[{run.size, run.octave, run.seed}] =
        good ? run.loss : std::numeric_limits<double>::infinity();
  }
  std::vector<detail::SizeSweep> all;
  for (const long size : sizes) {
    all.emplace_back(size, seeds, losses);
    all.back().extend();
  }
  const bool tuned = !all.empty() && all.front().missing().empty();
  Sweep result;
  for (detail::SizeSweep& one : all) {
    if (tuned && one.missing().empty()) {
      one.include(all.front().lowest());
      one.extend();
    }
    for (const SweepTask& task : one.missing()) result.missing.push_back(task);
    for (const RateRun& run : one.finished()) result.runs.push_back(run);
  }
  return result;
}

}  // namespace scalewise::check
