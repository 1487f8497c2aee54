// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How often tune's 95 % interval of the best loss holds the truth, and how close to the optimum its constants are, on
// simulated losses: one to six constants, interactions, seeds that shift all losses, divergence, and a best rate that
// is another after a quarter of the steps.
//
//   tune_errors 100      draws surfaces 0 to 99 and prints a table in Markdown
//   tune_errors 100 100  the next ones

#include <fmt/core.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/numeric/random.hpp"
#include "tune/quadratic.hpp"
#include "tune/search.hpp"
#include "tune/space.hpp"

namespace {

using namespace scalewise;
using numeric::RandomStream;

constexpr long budget = 84;
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

  explicit Surface(std::uint64_t n) : number(n) {
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
    noise = 0.001 * std::pow(20, stream.uniform());
    common = between(stream, 0, 0.03);
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

}  // namespace

int main(int count, char** words) {
  const int number = count > 1 ? std::atoi(words[1]) : 100;
  const int from = count > 2 ? std::atoi(words[2]) : 0;
  int held = 0, held_by_chosen = 0, ranges = 0, range_held = 0;
  std::vector<double> above, wide;
  for (int i = 0; i < number; ++i) {
    const Surface surface(static_cast<std::uint64_t>(from + i));
    tune::Losses losses;
    tune::Search search;
    while (!(search = tune::searched(tune::draws_of(budget), steps, losses)).missing.empty()) {
      for (const tune::Trial& trial : search.missing) losses[trial] = surface.loss(trial);
    }
    const Eigen::VectorXd best = surface.place(search.best);
    const double truth = surface.expected(best, true);
    held += search.low <= truth && truth <= search.high ? 1 : 0;
    // The same from the two seeds that the best of six was chosen by.
    const double a = losses.at({search.best, 2, steps}), b = losses.at({search.best, 3, steps});
    const double half = 12.706 * std::fabs(a - b) / 2;
    held_by_chosen += std::fabs((a + b) / 2 - truth) <= half ? 1 : 0;
    above.push_back(truth - surface.expected(surface.optimum, true));
    wide.push_back((search.high - search.low) / 2);
    std::vector<tune::Point> points;
    for (const auto& [trial, loss] : losses) {
      const Eigen::VectorXd at = surface.place(trial.draw);
      if (std::isfinite(loss))
        points.push_back({{at.begin(), at.end()}, trial.steps * 100 + trial.seed, loss});
    }
    const tune::Quadratic fit(points);
    const std::vector<tune::AxisEffect> effects = fit.effects({best.begin(), best.end()});
    for (Eigen::Index j = 0; j < surface.axes; ++j) {
      const tune::AxisEffect& e = effects[static_cast<std::size_t>(j)];
      // The best of this constant, the others as chosen.
      double lowest = truth, at = best[j];
      for (double x = -1; x <= 1; x += 0.01) {
        Eigen::VectorXd there = best;
        there[j] = x;
        if (surface.expected(there, true) < lowest) lowest = surface.expected(there, true), at = x;
      }
      ++ranges;
      range_held += e.low - 0.011 <= at && at <= e.high + 0.011 ? 1 : 0;
    }
  }
  std::sort(above.begin(), above.end());
  std::sort(wide.begin(), wide.end());
  const auto share = [](int part, int all) { return 100.0 * part / all; };
  const auto at = [&](const std::vector<double>& all, double part) {
    return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  fmt::print(
      "| surfaces | interval holds, % | half of it, median | of the seeds chosen by, % | above the "
      "optimum, median | 90 % | range holds, % |\n|---|---|---|---|---|---|---|\n| {} | {:.0f} | "
      "{:.4f} | {:.0f} | {:.4f} | {:.4f} | {:.0f} |\n",
      number, share(held, number), at(wide, 0.5), share(held_by_chosen, number), at(above, 0.5),
      at(above, 0.9), share(range_held, ranges));
}
