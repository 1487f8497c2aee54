// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Which runs a search makes: a function of the finished ones, whoever made them and in whatever order.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/numeric/line.hpp"

namespace scalewise::tune {

/// A point that is drawn: in the whole box, or in a third of it around another such point.
struct Draw {
  long index = 0;    // in the sequence; -1: none
  long around = -1;  // the index of the other; -1: the whole box
  auto operator<=>(const Draw&) const = default;
};

/// A run: what is drawn, the seed of training and the steps.
struct Trial {
  Draw draw = {};
  long seed = 1, steps = 0;
  auto operator<=>(const Trial&) const = default;
};

/// The losses of finished runs; infinite: it failed.
using Losses = std::map<Trial, double>;

inline constexpr long short_part = 4;  // draws have this part of the steps
inline constexpr long kept_part =
    3;  // of them this part trains to the end; then as many more are drawn
inline constexpr long finalists = 6;       // the best of both are run
inline constexpr long finalist_seeds = 2;  // on so many new seeds
inline constexpr long confirm_seeds = 4;   // and the best of those on so many more

/// Twice so many draws, and all that follows them, are at most `budget` runs.
inline long draws_of(long budget) {
  long draws = 1;
  const auto runs = [](long n) {
    const long kept = (n + kept_part - 1) / kept_part;
    return 2 * (n + kept) + finalist_seeds * std::min(2 * kept, finalists) + confirm_seeds;
  };
  while (runs(draws + 1) <= budget) ++draws;
  return draws;
}

/// One stage of the search, for the report.
struct Stage {
  std::string name;
  std::vector<Trial> trials = {};
};

/// How far a search is.
struct Search {
  std::vector<Trial> missing = {};  // none: it has ended
  std::vector<Stage> stages = {};   // those that have begun
  Draw best = {-1};                 // the one that was chosen; none: not yet, or all failed
  std::size_t confirmed = 0;        // of its last seeds, how many did not fail
  double loss = 0;                  // the mean over them
  double low = 0, high = 0;         // 95 % interval
};

namespace detail {

/// Runs the stages one after the other.
class Stages {
 public:
  Stages(long draws, long steps, const Losses& losses)
      : draws_(draws), steps_(steps), losses_(losses) {}

  Search run() {
    std::vector<Draw> kept = round("draws", -1);
    if (kept.empty()) return search_;
    const std::vector<Draw> nearer = round("draws around the best", kept.front().index);
    kept.insert(kept.end(), nearer.begin(), nearer.end());
    kept = best_of(kept, finalists, "", {1}, steps_);
    const std::vector<Draw> chosen =
        best_of(kept, 1, "the best six, new seeds", seeds_from(2, finalist_seeds), steps_);
    if (chosen.empty()) return search_;
    const std::vector<long> last = seeds_from(2 + finalist_seeds, confirm_seeds);
    best_of(chosen, 1, "the best one, new seeds", last, steps_);
    if (search_.missing.empty()) confirm(chosen.front(), last);
    return search_;
  }

 private:
  /// Draws with few steps; the best of them with all, in order.
  std::vector<Draw> round(const std::string& name, long around) {
    std::vector<Draw> draws;
    for (long i = 0; i < draws_; ++i) draws.push_back({i, around});
    const long few = std::max(1L, steps_ / short_part), kept = (draws_ + kept_part - 1) / kept_part;
    draws = best_of(draws, kept, name + ", a quarter of the steps", {1}, few);
    return best_of(draws, kept, "the best third of them, all steps", {1}, steps_);
  }

  static std::vector<long> seeds_from(long first, long count) {
    std::vector<long> seeds;
    for (long i = 0; i < count; ++i) seeds.push_back(first + i);
    return seeds;
  }

  /// The draws of the lowest mean loss, of those that never failed; none while runs are missing. Runs that a stage
  /// before has made are not a stage.
  std::vector<Draw> best_of(const std::vector<Draw>& draws, long count, const std::string& stage,
                            const std::vector<long>& seeds, long steps) {
    if (draws.empty() || !search_.missing.empty()) return {};
    if (!stage.empty()) search_.stages.push_back({stage});
    std::vector<std::pair<double, Draw>> order;
    for (const Draw& draw : draws) {
      double sum = 0;
      for (const long seed : seeds) {
        const Trial trial{draw, seed, steps};
        if (!stage.empty()) search_.stages.back().trials.push_back(trial);
        const auto found = losses_.find(trial);
        if (found == losses_.end()) search_.missing.push_back(trial);
        sum += found == losses_.end() ? 0 : found->second;
      }
      if (std::isfinite(sum)) order.emplace_back(sum, draw);
    }
    if (!search_.missing.empty()) return {};
    std::sort(order.begin(), order.end());
    std::vector<Draw> best;
    for (const auto& [sum, draw] : order) {
      if (static_cast<long>(best.size()) < count) best.push_back(draw);
    }
    return best;
  }

  /// Seeds that played no part in the choice: their mean has no bias, and Student's interval holds.
  void confirm(const Draw& draw, const std::vector<long>& seeds) {
    search_.best = draw;
    std::vector<double> good;
    for (const long seed : seeds) {
      const double loss = losses_.at({draw, seed, steps_});
      if (std::isfinite(loss)) good.push_back(loss);
    }
    search_.confirmed = good.size();
    const auto n = static_cast<double>(good.size());
    double mean = 0, squares = 0;
    for (const double loss : good) mean += loss / n;
    for (const double loss : good) squares += (loss - mean) * (loss - mean);
    const double half = good.size() < seeds.size() ? std::numeric_limits<double>::infinity()
                                                   : numeric::t_quantile(good.size() - 1) *
                                                         std::sqrt(squares / (n - 1) / n);
    search_.loss = good.empty() ? std::numeric_limits<double>::infinity() : mean;
    search_.low = mean - half, search_.high = mean + half;
  }

  long draws_, steps_;
  const Losses& losses_;
  Search search_;
};

}  // namespace detail

/// Draws at a quarter of the steps; the best third at all of them; as many again around the best; the best six of both
/// on two new seeds; the best one on four more, whose mean and interval are the result.
inline Search searched(long draws, long steps, const Losses& losses) {
  return detail::Stages(draws, steps, losses).run();
}

}  // namespace scalewise::tune
