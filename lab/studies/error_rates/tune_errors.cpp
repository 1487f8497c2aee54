// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How often tune's 95 % interval of the best loss holds the truth, how close to the optimum its constants are, and how
// often the effects and ranges that it reports hold, on simulated losses: one to six constants, interactions, seeds
// that shift all losses, divergence, and a best rate that is another after a quarter of the steps.
//
//   tune_errors 100         draws surfaces 0 to 99, searches with 84 runs each and prints a table in Markdown
//   tune_errors 100 100     the next ones
//   tune_errors 100 0 24 0  the first ones, with 24 runs each and losses without noise
//
// Surfaces where no constants are found, as all runs of a stage diverged, are not counted.

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "scalewise/numeric/random.hpp"
#include "tune/quadratic.hpp"
#include "tune/search.hpp"
#include "tune/space.hpp"

namespace {

using namespace scalewise;
using numeric::RandomStream;

constexpr long steps = 400;

double between(RandomStream& stream, double low, double high) {
  return low + (high - low) * stream.uniform();
}

/// Losses of which all is known.
struct Surface {
  std::uint64_t number = 0;
  Eigen::Index axes = 1;
  Eigen::VectorXd optimum;  // in the box from -1 to 1
  Eigen::MatrixXd bowl;
  double skew = 0, noise = 0, common = 0, cliff = 0, shift = 0;

  Surface(std::uint64_t n, double noises) : number(n) {
    RandomStream stream(n, "surface");
    axes = 1 + static_cast<Eigen::Index>(stream.bits() % 6);
    optimum = Eigen::VectorXd::Zero(axes);
    Eigen::MatrixXd root = Eigen::MatrixXd::Zero(axes, axes);
    for (Eigen::Index i = 0; i < axes; ++i) {
      optimum[i] = between(stream, -0.9, 0.9);
      root(i, i) = std::sqrt(0.005 * std::pow(100, stream.uniform()));
      for (Eigen::Index j = 0; j < i; ++j) root(i, j) = 0.4 * root(i, i) * between(stream, -1, 1);
    }
    bowl = root * root.transpose();
    skew = between(stream, -0.2, 0.5);
    noise = noises * 0.001 * std::pow(20, stream.uniform());
    common = noises * between(stream, 0, 0.03);
    cliff = between(stream, 0.3, 1.5);
    shift = between(stream, -0.2, 0.2);
  }

  /// The mean over seeds; infinite beyond the cliff.
  double expected(const Eigen::VectorXd& at, bool whole) const {
    Eigen::VectorXd v = at - optimum;
    if (!whole) v[0] -= shift;
    if (v[0] > cliff) return std::numeric_limits<double>::infinity();
    return 2.5 + (whole ? 0 : 0.4) + v.dot(bowl * v) * std::exp(skew * v[0]);
  }

  Eigen::VectorXd place(const tune::Draw& draw) const {
    const std::vector<double> point = tune::place_of(draw, static_cast<std::size_t>(axes), number);
    Eigen::VectorXd at(axes);
    for (Eigen::Index i = 0; i < axes; ++i) at[i] = 2 * point[static_cast<std::size_t>(i)] - 1;
    return at;
  }

  double loss(const tune::Trial& t) const {
    const auto normal = [&](const std::string& name) {
      return RandomStream(number, "noise.", name).normal();
    };
    const std::string seed = std::to_string(t.seed) + "." + std::to_string(t.steps);
    return expected(place(t.draw), t.steps == steps) + common * normal(seed) +
           noise * normal(seed + "." + std::to_string(t.draw.index) + "." +
                          std::to_string(t.draw.around));
  }
};

/// What holds, of how many.
struct Held {
  int held = 0, all = 0;

  void count(bool holds) {
    held += holds ? 1 : 0;
    ++all;
  }
  double share() const { return 100.0 * held / all; }
};

struct Found {
  Held interval, by_chosen, effect, range;
  std::vector<double> above, wide;

  void add(const Surface& surface, const tune::Search& search, const tune::Losses& losses) {
    const Eigen::VectorXd best = surface.place(search.best);
    const double truth = surface.expected(best, true);
    interval.count(search.low <= truth && truth <= search.high);
    // The same from the two seeds that the best of six was chosen by.
    const double a = losses.at({search.best, 2, steps}), b = losses.at({search.best, 3, steps});
    by_chosen.count(std::fabs((a + b) / 2 - truth) <= 12.706 * std::fabs(a - b) / 2);
    above.push_back(truth - surface.expected(surface.optimum, true));
    wide.push_back((search.high - search.low) / 2);
    std::vector<tune::Point> points;
    for (const auto& [trial, loss] : losses) {
      const Eigen::VectorXd at = surface.place(trial.draw);
      if (std::isfinite(loss))
        points.push_back(
            {{at.begin(), at.end()}, trial.steps * 100 + trial.seed, loss, trial.steps < steps});
    }
    const std::vector<tune::AxisEffect> effects =
        tune::Quadratic(points).effects({best.begin(), best.end()});
    for (Eigen::Index j = 0; j < surface.axes; ++j)
      add_axis(surface, best, j, effects[static_cast<std::size_t>(j)]);
  }

 private:
  void add_axis(const Surface& surface, const Eigen::VectorXd& best, Eigen::Index j,
                const tune::AxisEffect& e) {
    const auto loss_at = [&](double x) {
      Eigen::VectorXd there = best;
      there[j] = x;
      return surface.expected(there, true);
    };
    const double truth = loss_at(best[j]), rise = loss_at(best[j] + (best[j] > 0 ? -1 : 1)) - truth;
    if (std::isfinite(rise)) effect.count(std::fabs(e.effect - rise) <= 2 * e.error);
    // The best of this constant, the others as chosen.
    double lowest = truth, at = best[j];
    for (double x = -1; x <= 1; x += 0.01) {
      const double loss = loss_at(x);
      if (loss < lowest) lowest = loss, at = x;
    }
    range.count(e.low - 0.011 <= at && at <= e.high + 0.011);
  }
};

}  // namespace

int main(int count, char** words) {
  const int number = count > 1 ? std::atoi(words[1]) : 100;
  const int from = count > 2 ? std::atoi(words[2]) : 0;
  const long budget = count > 3 ? std::atol(words[3]) : 84;
  const double noises = count > 4 ? std::atof(words[4]) : 1;  // times the noise of a surface
  Found found;
  std::map<long, Found> by_axes;
  for (int i = 0; i < number; ++i) {
    const Surface surface(static_cast<std::uint64_t>(from + i), noises);
    tune::Losses losses;
    tune::Search search;
    while (!(search = tune::searched(tune::draws_of(budget), steps, losses)).missing.empty()) {
      for (const tune::Trial& trial : search.missing) losses[trial] = surface.loss(trial);
    }
    if (search.best.index < 0) continue;
    found.add(surface, search, losses);
    by_axes[surface.axes].add(surface, search, losses);
  }
  std::sort(found.above.begin(), found.above.end());
  std::sort(found.wide.begin(), found.wide.end());
  const auto at = [&](const std::vector<double>& all, double part) {
    return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  fmt::print(
      "| surfaces | interval holds, % | half of it, median | of the seeds chosen by, % | above the "
      "optimum, median | 90 % | effect holds, % | range holds, % "
      "|\n|---|---|---|---|---|---|---|---|\n"
      "| {} | {:.0f} | {:.4f} | {:.0f} | {:.4f} | {:.4f} | {:.0f} | {:.0f} |\n",
      found.interval.all, found.interval.share(), at(found.wide, 0.5), found.by_chosen.share(),
      at(found.above, 0.5), at(found.above, 0.9), found.effect.share(), found.range.share());
  fmt::print("\n| constants | surfaces | effect holds, % | range holds, % |\n|---|---|---|---|\n");
  for (const auto& [axes, some] : by_axes) {
    fmt::print("| {} | {} | {:.0f} | {:.0f} |\n", axes, some.interval.all, some.effect.share(),
               some.range.share());
  }
}
