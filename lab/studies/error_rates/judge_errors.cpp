// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How often 95 % intervals of a sweep's drift and regret hold the truth, and how often its verdict is wrong, on tables
// as users have them: few seeds, coarse and short grids of rates, missing and diverged runs.
//
//   judge_errors 400      draws surfaces 0 to 399 and prints a table in Markdown
//   judge_errors 400 400  the next ones

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/transfer.hpp"
#include "scalewise/numeric/random.hpp"

namespace {

using namespace scalewise;
using check::RateRun;

/// A sweep of which all is known.
struct Surface {
  double drift = 0;
  double curvature = 0;  // at the optimum, in nats per octave²
  double noise = 0;      // of a loss at the optimum
  double scatter = 0;    // of a seed's optimum, at the smallest size
  double centre = 0;     // the optimum of the smallest size
  std::vector<long> sizes = {};
  std::vector<long> seeds = {};
  std::vector<double> bowls = {};  // curvature of each size over the common one
  std::vector<double> skews = {};  // how much steeper losses of each size are above the optimum
  std::vector<RateRun> runs = {};
  bool gaps = false;
  bool edge = false;  // an optimum outside of the rates
  bool diverged = false;

  double octaves(std::size_t k) const {
    return std::log2(static_cast<double>(sizes[k]) / static_cast<double>(sizes[0]));
  }
  double optimum(std::size_t k) const { return centre + drift * octaves(k); }

  /// Above the optimum: no cubic, but close to one near it.
  double rise(std::size_t k, double v) const {
    const double x = skews[k] * v;
    const double shape = std::fabs(x) < 1e-3 ? 1 + x / 3 : 2 * (std::expm1(x) - x) / (x * x);
    return curvature * bowls[k] * v * v * shape;
  }
};

template <class Value>
Value pick(numeric::RandomStream& stream, const std::vector<Value>& all) {
  return all[static_cast<std::size_t>(stream.uniform() * static_cast<double>(all.size()))];
}

double between(numeric::RandomStream& stream, double low, double high) {
  return low + (high - low) * stream.uniform();
}

double log_between(numeric::RandomStream& stream, double low, double high) {
  return low * std::pow(high / low, stream.uniform());
}

void draw_runs(Surface& s, numeric::RandomStream& stream) {
  const double step = pick<double>(stream, {0.5, 1, 1});
  const double low = std::floor(s.centre - between(stream, 2, 5));
  const auto count = static_cast<int>(between(stream, 5, 10));
  const double missing = pick<double>(stream, {0, 0.05, 0.15});
  const double cliff = between(stream, 1.5, 5);
  const double high = low + step * (count - 1);
  for (std::size_t k = 0; k < s.sizes.size(); ++k) {
    s.edge = s.edge || s.optimum(k) < low || s.optimum(k) > high;
    for (long seed = 1; seed <= s.seeds[k]; ++seed) {
      const double of_seed = 0.02 * stream.normal();
      const double scatter = s.scatter * std::exp2(-0.25 * s.octaves(k));
      const double optimum = s.optimum(k) + scatter * stream.normal();
      const double most = s.optimum(k) + cliff + 0.2 * stream.normal();
      for (int i = 0; i < count; ++i) {
        const double octave = low + step * i;
        const double v = octave - optimum;
        const double noise = s.noise * std::sqrt(1 + v * v * v * v);
        double loss = 2.7 + of_seed + s.rise(k, v) + noise * stream.normal();
        if (octave > most) loss = std::numeric_limits<double>::infinity();
        if (stream.uniform() < missing) {
          s.gaps = true;
        } else {
          s.diverged = s.diverged || octave > most;
          s.runs.push_back({s.sizes[k], octave, seed, loss});
        }
      }
    }
  }
}

/// Measured: recorded_sweeps.py, for how much sizes and sweeps differ in curvature and skew, which is three times the third
///           order over the curvature, and for how noise grows
Surface draw(std::uint64_t number) {
  numeric::RandomStream stream(number, "surface");
  Surface s;
  s.drift = between(stream, -1.2, 0.4);
  s.curvature = between(stream, 0.02, 0.06);
  const double skew = 0.36 * stream.normal();
  s.noise = log_between(stream, 0.002, 0.012);
  s.scatter = log_between(stream, 0.03, 0.2);
  s.centre = between(stream, -9, -7);
  const double bowls = between(stream, 0, 0.4);
  const double skews = between(stream, 0, 0.5);
  const auto count = pick<int>(stream, {2, 3, 4, 4, 5});
  const long most = pick<long>(stream, {1, 2, 3, 4});
  const bool fewer = stream.uniform() < 0.5;  // for larger sizes
  for (int k = 0; k < count; ++k) {
    s.sizes.push_back(256L << k);
    s.seeds.push_back(fewer ? std::max(1L, most - k) : most);
    s.bowls.push_back(std::exp(bowls * stream.normal()));
    s.skews.push_back(skew + skews * stream.normal());
  }
  draw_runs(s, stream);
  return s;
}

struct Count {
  std::string name;
  int surfaces = 0, drift = 0, drift_held = 0, regret = 0, regret_held = 0;
  int pass = 0, fail = 0, wrong_pass = 0, wrong_fail = 0;

  void print() const {
    const auto share = [](int part, int all) {
      return all == 0 ? std::string("-") : fmt::format("{:.1f}", 100.0 * part / all);
    };
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", name, surfaces, drift,
               share(drift_held, drift), regret, share(regret_held, regret), pass, wrong_pass, fail,
               wrong_fail);
  }

  void add(const Surface& s) {
    ++surfaces;
    const check::Transfer found = check::analyse_transfer(s.runs);
    const check::TransferVerdict judged = check::judge(found, "width");
    const auto holds = [](const check::IntervalEstimate& e, double truth) {
      return e.low <= truth && truth <= e.high;
    };
    const check::IntervalEstimate& d = found.drift;
    if (d.high > d.low && std::isfinite(d.low)) {
      ++drift;
      drift_held += holds(d, s.drift) ? 1 : 0;
    }
    std::size_t first = s.sizes.size();
    std::size_t last = first;
    for (std::size_t k = 0; k < found.sizes.size(); ++k) {
      if (!found.sizes[k].interior || !found.curved) continue;
      if (first == s.sizes.size()) first = k;
      last = k;
    }
    const double rise = last > first ? s.rise(last, s.optimum(first) - s.optimum(last)) : 0;
    if (last > first) {
      const check::IntervalEstimate& r = found.sizes[last].regret;
      if (std::isfinite(r.low)) {
        ++regret;
        regret_held += holds(r, rise) ? 1 : 0;
      }
    }
    const bool transfers = std::fabs(s.drift) <= check::drift_tolerance;
    if (judged.verdict == check::Verdict::pass) {
      ++pass;
      wrong_pass += transfers ? 0 : 1;
    }
    if (judged.verdict == check::Verdict::fail) {
      ++fail;
      const double all = s.rise(s.sizes.size() - 1, s.optimum(0) - s.optimum(s.sizes.size() - 1));
      wrong_fail += transfers && all < 0.02 * 2.7 && !s.diverged ? 1 : 0;
    }
  }
};

}  // namespace

int main(int count, char** words) {
  const int number = count > 1 ? std::atoi(words[1]) : 400;
  const int from = count > 2 ? std::atoi(words[2]) : 0;
  Count all{"all"}, one{"one seed at every size"}, some{"one seed at some"}, more{"two or more"},
      gaps{"runs are missing"}, edge{"an optimum outside of the rates"}, diverged{"runs diverged"};
  for (int i = 0; i < number; ++i) {
    const Surface s = draw(static_cast<std::uint64_t>(from + i));
    all.add(s);
    (s.seeds.front() == 1 ? one : s.seeds.back() == 1 ? some : more).add(s);
    if (s.gaps) gaps.add(s);
    if (s.edge) edge.add(s);
    if (s.diverged) diverged.add(s);
  }
  fmt::print(
      "| surfaces | number | drift judged | held, % | regret judged | held, % | pass | wrong | "
      "fail | "
      "wrong |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Count* c : {&all, &one, &some, &more, &gaps, &edge, &diverged}) c->print();
}
