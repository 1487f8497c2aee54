// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "scalewise/check/rate_curve.hpp"

namespace scalewise::check {

/// A run that is still to be made.
struct SweepTask {
  long size = 0;
  double octave = 0;
  long seed = 0;
};

/// A size and the seeds 1, 2, … that it is run with.
struct SweepSize {
  long size = 0;
  long seeds = 0;
};

/// How far a sweep over rates has come.
struct Sweep {
  std::vector<SweepTask> missing;  // empty: done
  std::vector<RateRun> runs;       // the finished ones that count, by size, seed and rate
};

inline constexpr long first_octaves = 2;   // the grid begins with these many on either side
inline constexpr long most_octaves = 12;   // and ends here, a factor of 4096 from its centre
inline constexpr long scouts = 3;          // seeds that look for the optimum
inline constexpr long rates_per_seed = 7;  // that a seed is run at, around the optimum

/// How many runs a size is expected to take.
/// Equation: 7 seeds + scouts, as if optima were an octave from the centre
/// Measured: scouts made 0 to 2 runs more than 7 each, 0.9 on average, in 37 sweeps of lab/studies
inline long expected_runs(const SweepSize& size) {
  return size.seeds * rates_per_seed + (std::min)(size.seeds, scouts);
}

namespace detail {

/// The rates of one size, as far as they are finished.
class SizeSweep {
 public:
  using Losses = std::map<std::tuple<long, long, double>, double>;  // by size, seed, octave

  SizeSweep(SweepSize size, const Losses& losses)
      : size_(size), scouts_((std::min)(size.seeds, scouts)), losses_(losses) {}

  /// Extends the scouts' range until every optimum in it is interior, with two octaves on either
  /// side, or a run is missing.
  void extend() {
    while (scouts_missing().empty()) {
      const auto [below, above] = edges();
      const bool down = below && low_ > -most_octaves;
      const bool up = above && high_ < most_octaves;
      if (!down && !up) return;
      low_ -= down ? 1 : 0;
      high_ += up ? 1 : 0;
    }
  }

  void include(long octave) {
    low_ = (std::min)(low_, octave);
    high_ = (std::max)(high_, octave);
  }

  std::vector<SweepTask> scouts_missing() const {
    std::vector<SweepTask> tasks;
    for (long octave = low_; octave <= high_; ++octave) {
      for (long seed = 1; seed <= scouts_; ++seed) want(static_cast<double>(octave), seed, tasks);
    }
    return tasks;
  }

  /// A few seeds scout first: the whole range, then around its best rate; the other seeds follow them
  /// there, except to rates at which a scout diverged.
  std::vector<SweepTask> missing() const {
    std::vector<SweepTask> tasks = scouts_missing();
    if (!tasks.empty()) return tasks;
    const std::vector<double> close_by = around(best());
    for (const double octave : close_by) {
      for (long seed = 1; seed <= scouts_; ++seed) want(octave, seed, tasks);
    }
    if (!tasks.empty()) return tasks;
    for (const double octave : close_by) {
      if (!std::isfinite(mean(octave))) continue;
      for (long seed = scouts_ + 1; seed <= size_.seeds; ++seed) want(octave, seed, tasks);
    }
    return tasks;
  }

  /// The scouts' best rate on the grid of octaves.
  /// Requires: no scout is missing there.
  long best() const {
    return curve_best([&](double octave) { return mean(octave); });
  }

  std::vector<RateRun> finished() const {
    std::set<double> wanted;
    for (long octave = low_; octave <= high_; ++octave) wanted.insert(static_cast<double>(octave));
    if (scouts_missing().empty()) {
      for (const double octave : around(best())) wanted.insert(octave);
    }
    std::vector<RateRun> runs;
    for (auto run = losses_.lower_bound({size_.size, 1, -HUGE_VAL}); run != losses_.end(); ++run) {
      const auto [size, seed, octave] = run->first;
      if (size != size_.size || seed > size_.seeds) break;
      if (wanted.count(octave) == 1) runs.push_back({size, octave, seed, run->second});
    }
    return runs;
  }

 private:
  void want(double octave, long seed, std::vector<SweepTask>& tasks) const {
    if (losses_.count({size_.size, seed, octave}) == 0) {
      tasks.push_back({size_.size, octave, seed});
    }
  }

  /// The rates of the fit: two octaves to either side, the innermost in halves.
  static std::vector<double> around(long best) {
    std::vector<double> octaves;
    for (const double step : {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0}) {
      const double octave = static_cast<double>(best) + step;
      if (std::fabs(octave) <= static_cast<double>(most_octaves)) octaves.push_back(octave);
    }
    return octaves;
  }

  double loss(double octave, long seed) const { return losses_.at({size_.size, seed, octave}); }

  double mean(double octave) const {
    double sum = 0;
    for (long seed = 1; seed <= scouts_; ++seed) {
      sum += loss(octave, seed) / static_cast<double>(scouts_);
    }
    return sum;
  }

  template <class Loss>
  long curve_best(const Loss& loss) const {
    long best = low_;
    for (long octave = low_; octave <= high_; ++octave) {
      if (loss(static_cast<double>(octave)) < loss(static_cast<double>(best))) best = octave;
    }
    return best;
  }

  /// On which sides the mean over scouts, or one of them, is lowest at the last rate; below when all
  /// diverged.
  std::pair<bool, bool> edges() const {
    std::vector<long> optima{best()};
    for (long seed = 1; seed <= scouts_; ++seed) {
      optima.push_back(curve_best([&](double octave) { return loss(octave, seed); }));
    }
    std::pair<bool, bool> found{false, false};
    for (const long octave : optima) {
      found.first = found.first || octave == low_;
      found.second = found.second || octave == high_;
    }
    return found;
  }

  SweepSize size_;
  long scouts_;
  const Losses& losses_;
  long low_ = -first_octaves;
  long high_ = first_octaves;
};

}  // namespace detail

/// The runs that a sweep over rates and sizes still needs.
/// Equation: each size begins with five rates, a factor of 2 apart and three seeds, and gets one more
///           at a side while the mean over seeds, or a seed alone, is lowest there, or below while all
///           diverge; then all its seeds are run at 0, ±1/2, ±1 and ±2 octaves from the best of these
///           rates; and the first three at the best rate of the first size, for its regret
/// Accuracy: a function of the finished runs, whatever their order: a sweep that was stopped resumes
///           as if it had not been. Runs of other sizes or seeds do no harm.
/// Requires: sizes grow; a run is finished once, its loss not finite if it diverged.
inline Sweep sweep(const std::vector<SweepSize>& sizes, const std::vector<RateRun>& finished) {
  detail::SizeSweep::Losses losses;
  for (const RateRun& run : finished) {
    const bool good = std::isfinite(run.loss);
    losses[{run.size, run.seed, run.octave}] =
        good ? run.loss : std::numeric_limits<double>::infinity();
  }
  std::vector<detail::SizeSweep> all;
  for (const SweepSize& size : sizes) {
    all.emplace_back(size, losses);
    all.back().extend();
  }
  const bool tuned = !all.empty() && all.front().scouts_missing().empty();
  Sweep result;
  for (detail::SizeSweep& one : all) {
    if (tuned && one.scouts_missing().empty()) {
      one.include(all.front().best());
      one.extend();
    }
    for (const SweepTask& task : one.missing()) result.missing.push_back(task);
    for (const RateRun& run : one.finished()) result.runs.push_back(run);
  }
  return result;
}

/// The same with as many seeds at every size.
inline Sweep sweep(const std::vector<long>& sizes, long seeds,
                   const std::vector<RateRun>& finished) {
  std::vector<SweepSize> all;
  all.reserve(sizes.size());
  for (const long size : sizes) all.push_back({size, seeds});
  return sweep(all, finished);
}

/// How many seeds each size gets if the largest has `seeds`: those that make the drift's variance
/// smallest at their cost, where the optimum of a seed scatters as 1/√size.
/// Equation: seeds(k) = seeds √(cost(last)/cost(k)) √(last/size(k)) |w(k)/w(last)|,
///           w(k) = log2 size(k) minus its mean, at least min(seeds, 3) and at most 8 seeds
/// Source:   Neyman 1934, optimal allocation. For four widths that double, at costs as width², it
///           takes 17 % more time than five seeds everywhere, and gives a quarter of the variance.
/// Shapes:   costs (sizes)
/// Units:    of costs any, the same for all
/// Measured: scatter of 0.17 and 0.06 octaves at widths 32 and 128 under maximal update, see
///           docs/checks/learning_rate_transfer.md.
/// Requires: sizes grow; costs are positive, as many as sizes.
inline std::vector<SweepSize> allocate(const std::vector<long>& sizes,
                                       const std::vector<double>& costs, long seeds) {
  const auto octave = [](long size) { return std::log2(static_cast<double>(size)); };
  double mean = 0;
  for (const long size : sizes) mean += octave(size) / static_cast<double>(sizes.size());
  std::vector<SweepSize> result;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const double weight =
        sizes.size() < 2 ? 1 : std::fabs((octave(sizes[k]) - mean) / (octave(sizes.back()) - mean));
    const double scatter = std::exp2((octave(sizes.back()) - octave(sizes[k])) / 2);
    const double wanted =
        static_cast<double>(seeds) * scatter * weight * std::sqrt(costs.back() / costs[k]);
    const auto most = static_cast<double>(8 * seeds);
    result.push_back({sizes[k], (std::max)(std::lround(std::fmin(std::ceil(wanted - 1e-9), most)),
                                           (std::min)(seeds, scouts))});
  }
  return result;
}

}  // namespace scalewise::check
