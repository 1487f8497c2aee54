// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using scalewise::test::Coverage;
using scalewise::test::error_message;

constexpr double diverged = std::numeric_limits<double>::infinity();

/// Runs at all rates from `low` to `high`, with the loss that a function of size, octave and seed
/// gives.
std::vector<RateRun> runs_of(const std::vector<long>& sizes, long low, long high, long seeds,
                             const std::function<double(long, long, long)>& loss) {
  std::vector<RateRun> runs;
  for (const long size : sizes) {
    for (long octave = low; octave <= high; ++octave) {
      for (long seed = 1; seed <= seeds; ++seed) {
        runs.push_back({size, octave, seed, loss(size, octave, seed)});
      }
    }
  }
  return runs;
}

/// A parabola of the rate's logarithm; small enough that no regret exceeds 2 % of its 2 nats.
double bowl(double octave, double optimum, double curvature = 0.05) {
  return 2 + curvature * (octave - optimum) * (octave - optimum);
}

/// Runs whose regret is the one number of interest: optima at octave 0 and, at size 32, at 1.
std::vector<RateRun> regret_runs(const std::vector<double>& at_0, const std::vector<double>& at_1) {
  return runs_of({16, 32}, -2, 3, static_cast<long>(at_0.size()), [&](long size, long o, long s) {
    if (size == 16) return o == 0 ? 1.0 : 3.0;
    const auto seed = static_cast<std::size_t>(s - 1);
    return o == 0 ? at_0[seed] : o == 1 ? at_1[seed] : 9.0;
  });
}

}  // namespace

TEST_CASE("A parabola's minimum is found between the rates of the grid", "[check]") {
  for (const double at : {-1.0, -0.3, 0.0, 0.49, 1.2}) {
    std::vector<double> losses;
    for (long o = -3; o <= 3; ++o) losses.push_back(bowl(static_cast<double>(o), at));
    const Optimum found = optimum(-3, losses);
    CHECK(found.interior);
    CHECK(found.fitted);
    CHECK_THAT(found.octave, WithinAbs(at, 1e-12));
    CHECK_THAT(found.loss, WithinAbs(2, 1e-12));
    CHECK(found.lowest == std::lround(at));
  }
}

TEST_CASE("The optimum does not jump where two rates are equally good", "[check]") {
  const double tiny = 1e-9;
  const Optimum left = optimum(0, {3, 1, 1 + tiny, 5});
  const Optimum right = optimum(0, {3, 1 + tiny, 1, 5});
  CHECK(left.lowest == 1);
  CHECK(right.lowest == 2);
  CHECK_THAT(left.octave, WithinAbs(1.5, 1e-8));
  CHECK_THAT(right.octave, WithinAbs(1.5, 1e-8));
}

TEST_CASE("Edges, divergence and flat losses give no false parabola", "[check]") {
  CHECK_FALSE(optimum(0, {1, 2, 3}).interior);
  CHECK_FALSE(optimum(0, {3, 2, 1}).interior);
  CHECK_FALSE(optimum(0, {diverged, diverged}).trained);
  CHECK_FALSE(optimum(0, {}).trained);
  const Optimum beside = optimum(5, {2, 1, diverged});
  CHECK(beside.interior);
  CHECK_FALSE(beside.fitted);
  CHECK(beside.octave == 6);
  CHECK(optimum(0, {2, 2, 2, 2}).lowest == 0);
  CHECK(optimum(0, {3, 2, 2, 2, 3}).octave == 1.5);
}

TEST_CASE("The drift is the slope of the optimum per octave of size", "[check]") {
  for (const double drift : {-1.0, -0.1, 0.0, 0.5}) {
    // The octave of size 32 is 0, and seeds agree, so the interval is a point.
    const auto runs = runs_of({16, 32, 64, 128}, -6, 6, 3, [&](long size, long o, long) {
      return bowl(static_cast<double>(o), 0.2 + drift * std::log2(static_cast<double>(size) / 32));
    });
    const Transfer found = analyse_transfer(runs);
    CHECK_THAT(found.drift.value, WithinAbs(drift, 1e-12));
    CHECK_THAT(found.drift.low, WithinAbs(drift, 1e-12));
    CHECK_THAT(found.drift.high, WithinAbs(drift, 1e-12));
    CHECK_THAT(found.sizes[3].optimum.value, WithinAbs(0.2 + 2 * drift, 1e-12));
    CHECK(judge(found, "width").verdict ==
          (std::abs(drift) < 0.15 ? Verdict::pass : Verdict::fail));
    // Where the drift is what is expected, nothing is lost but the rounding to the grid.
    const Transfer expected = analyse_transfer(runs, drift);
    CHECK(judge(expected, "width").verdict == Verdict::pass);
    CHECK(expected.sizes[3].transferred == expected.sizes[3].best);
  }
}

TEST_CASE("Without curvature between them, seeds give Student's interval", "[check]") {
  // Parabolas of one curvature average to one at the mean of their optima, so that the optimum is a
  // mean of independent numbers, and the textbook has its interval: mean ± t s/√n, with
  // t(0.975; 4) = 2.7764, and 4.3027 and 12.706 for 3 and 2 seeds.
  const std::vector<double> shift{0.31, -0.22, 0.05, 0.17, -0.11};
  const std::vector<std::pair<std::size_t, double>> tables{{5, 2.7764}, {3, 4.3027}, {2, 12.706}};
  for (const auto& [n, t] : tables) {
    const auto runs =
        runs_of({16, 32, 64}, -5, 5, static_cast<long>(n), [&](long size, long o, long s) {
          const double by_size = std::log2(static_cast<double>(size) / 32);
          return bowl(static_cast<double>(o),
                      shift[static_cast<std::size_t>(s - 1)] * (1 + by_size));
        });
    double mean = 0;
    for (std::size_t s = 0; s < n; ++s) mean += shift[s] / static_cast<double>(n);
    double squares = 0;
    for (std::size_t s = 0; s < n; ++s) squares += (shift[s] - mean) * (shift[s] - mean);
    const auto count = static_cast<double>(n);
    const double half = t * std::sqrt(squares / (count - 1) / count);
    const Transfer found = analyse_transfer(runs);
    // A thousand resamples know a standard deviation to 1/√2000 of itself; 5 of those are 11 %.
    for (const IntervalEstimate& e : {found.drift, found.sizes[1].optimum}) {
      CHECK_THAT(e.value, WithinAbs(mean, 1e-12));
      CHECK_THAT(e.high - e.value, WithinRel(half, 0.11));
      CHECK_THAT(e.value - e.low, WithinRel(half, 0.11));
    }
    CHECK_THAT(found.sizes[0].optimum.value, WithinAbs(0, 1e-12));
    CHECK_THAT(found.sizes[0].optimum.high, WithinAbs(0, 1e-12));
  }
}

TEST_CASE("95 % intervals of the drift hold it in 95 of 100 sweeps", "[check]") {
  // Optima of four seeds that scatter normally by half an octave at each size, about a drift of
  // 0.25: of 400 independent sweeps Student's interval holds it in 380 ± 4.4, and a right one fails
  // once in a million. One that is half as wide holds it in 316.
  int held = 0;
  for (std::uint64_t sweep = 0; sweep < 400; ++sweep) {
    scalewise::RandomStream stream(sweep, "drift");
    std::vector<double> shift;
    for (int i = 0; i < 8; ++i) shift.push_back(0.5 * stream.normal());
    const auto runs = runs_of({16, 64}, -2, 2, 4, [&](long size, long o, long s) {
      const double by_size = size == 16 ? 0 : 2 * 0.25;
      const auto at = static_cast<std::size_t>(s - 1 + (size == 16 ? 0 : 4));
      return bowl(static_cast<double>(o), by_size + shift[at]);
    });
    const Transfer found = analyse_transfer(runs);
    if (found.drift.low <= 0.25 && 0.25 <= found.drift.high) ++held;
  }
  INFO(held);
  CHECK(Coverage(400, 0.95).accepts(held));
}

TEST_CASE("What all seeds and sizes have in common does not blur the drift", "[check]") {
  const auto runs = runs_of({16, 32, 64}, -5, 5, 3, [](long, long o, long s) {
    return bowl(static_cast<double>(o), 0.4 * static_cast<double>(s - 2)) + static_cast<double>(s);
  });
  const Transfer found = analyse_transfer(runs);
  CHECK(found.sizes[0].optimum.high > 0.5);
  CHECK_THAT(found.drift.high, WithinAbs(0, 1e-12));
}

TEST_CASE("Regret is the paired difference at measured rates", "[check]") {
  // Differences 0.1 and 0.3: mean 0.2, standard deviation 0.1 √2, standard error 0.1.
  const Transfer found = analyse_transfer(regret_runs({2.1, 2.5}, {2.0, 2.2}));
  CHECK(found.sizes[0].regret == 0);
  CHECK(found.sizes[0].transferred == 0);
  CHECK(found.sizes[1].best == 1);
  CHECK(found.sizes[1].transferred == 0);
  CHECK_THAT(found.sizes[1].loss, WithinAbs(2.1, 1e-12));
  CHECK_THAT(found.sizes[1].regret, WithinAbs(0.2, 1e-12));
  CHECK_THAT(found.sizes[1].regret_error, WithinAbs(0.1, 1e-12));
}

TEST_CASE("Regrets are judged beside 2 % and two standard errors", "[check]") {
  const auto judged = [](double regret, double error) {
    SizeTransfer size;
    size.loss = 2;  // 2 % are 0.04
    size.regret = regret;
    size.regret_error = error;
    return scalewise::check::detail::judge_regret(size);
  };
  CHECK(judged(0, 0) == Verdict::pass);
  CHECK(judged(0.039, 0) == Verdict::pass);
  CHECK(judged(0.041, 0) == Verdict::fail);
  CHECK(judged(0.05, 0.026) == Verdict::pass);
  CHECK(judged(0.05, 0.024) == Verdict::inconclusive);
  CHECK(judged(0.09, 0.024) == Verdict::fail);
  CHECK(judged(diverged, 0) == Verdict::fail);
}

TEST_CASE("Verdicts on the drift", "[check]") {
  const auto judged = [](double low, double high, double expected) {
    Transfer transfer;
    transfer.seeds = 3;
    transfer.expected = expected;
    SizeTransfer size;
    size.trained = size.interior = true;
    size.loss = 2;
    for (size.size = 16; size.size <= 64; size.size *= 2) transfer.sizes.push_back(size);
    transfer.drift = {(low + high) / 2, low, high};
    return judge(transfer, "width").verdict;
  };
  CHECK(judged(-0.1, 0.14, 0) == Verdict::pass);
  CHECK(judged(-0.1, 0.16, 0) == Verdict::inconclusive);
  CHECK(judged(-0.2, -0.1, 0) == Verdict::inconclusive);
  CHECK(judged(-1.1, -0.9, 0) == Verdict::fail);
  CHECK(judged(0.16, 0.9, 0) == Verdict::fail);
  CHECK(judged(-9, 9, 0) == Verdict::inconclusive);
  CHECK(judged(-1.1, -0.9, -1) == Verdict::pass);
  CHECK(judged(-0.1, 0.1, -1) == Verdict::fail);
  CHECK(judged(-diverged, diverged, 0) == Verdict::inconclusive);
}

TEST_CASE("Too little to judge is inconclusive, and says what is missing", "[check]") {
  const auto flat = [](long, long o, long) { return bowl(static_cast<double>(o), 0); };
  const auto judged = [](const std::vector<RateRun>& runs) {
    return judge(analyse_transfer(runs), "width");
  };
  CHECK(judged(runs_of({16, 32}, -2, 2, 3, flat)).verdict == Verdict::pass);
  for (const auto& few :
       {runs_of({16}, -2, 2, 3, flat), runs_of({16, 32}, -2, 2, 1, flat), std::vector<RateRun>{}}) {
    CHECK(judged(few).verdict == Verdict::inconclusive);
    CHECK_THAT(judged(few).reason, ContainsSubstring("two sizes and two seeds"));
  }
  const TransferVerdict edge = judged(runs_of({16, 32}, 0, 4, 3, flat));
  CHECK(edge.verdict == Verdict::inconclusive);
  CHECK_THAT(edge.reason, ContainsSubstring("at width 16 the lowest loss lies at the edge"));
  const TransferVerdict diverging =
      judged(runs_of({16, 32}, -2, 2, 3, [&](long size, long o, long s) {
        return size == 32 ? std::nan("") : flat(size, o, s);
      }));
  CHECK(diverging.verdict == Verdict::inconclusive);
  CHECK_THAT(diverging.reason, ContainsSubstring("at width 32 every rate diverged"));
}

TEST_CASE("A transferred rate that diverges with one seed is a failure", "[check]") {
  const Transfer found =
      analyse_transfer(runs_of({16, 32}, -3, 2, 3, [](long size, long o, long s) {
        if (size == 32 && s == 2 && o >= 0) return diverged;
        return bowl(static_cast<double>(o), size == 32 ? -1 : 0);
      }));
  CHECK(found.sizes[1].regret == diverged);
  const TransferVerdict verdict = judge(found, "width");
  CHECK(verdict.verdict == Verdict::fail);
  CHECK_THAT(verdict.reason, ContainsSubstring("at width 32 the transferred rate diverges"));
}

TEST_CASE("Beside a divergence the optimum is uncertain by half a step", "[check]") {
  // Uniform over a step: standard deviation 1/√12; for two seeds times √2 and t = 12.706.
  const Transfer found = analyse_transfer(runs_of({16, 32}, -2, 1, 2, [](long, long o, long) {
    return o == 1 ? diverged : bowl(static_cast<double>(o), 0);
  }));
  CHECK(found.sizes[1].optimum.value == 0);
  const double half = 12.706 * std::sqrt(2.0 / 12);
  CHECK_THAT(found.sizes[1].optimum.high, WithinRel(half, 0.1));
  // Two independent ones, an octave apart: √2 times as much.
  CHECK_THAT(found.drift.high - found.drift.value, WithinRel(half * std::sqrt(2.0), 0.1));
}

TEST_CASE("The order of runs does not matter, to the last bit", "[check]") {
  auto runs = runs_of({16, 32, 64}, -4, 4, 4, [](long size, long o, long s) {
    return bowl(static_cast<double>(o), 1.0 / static_cast<double>(size * s));
  });
  const Transfer one = analyse_transfer(runs);
  std::reverse(runs.begin(), runs.end());
  const Transfer other = analyse_transfer(runs);
  CHECK(one.drift.value == other.drift.value);
  CHECK(one.drift.low == other.drift.low);
  CHECK(one.sizes[2].optimum.high == other.sizes[2].optimum.high);
}

TEST_CASE("Runs that make no grid are refused", "[check]") {
  const auto refused = [](const std::vector<RateRun>& runs) {
    return error_message([&] { analyse_transfer(runs); });
  };
  CHECK_THAT(refused({{0, 0, 1, 2}}), ContainsSubstring("size = 0"));
  CHECK_THAT(refused({{8, 0, 1, 2}, {8, 0, 1, 2}}),
             ContainsSubstring("seed = 1: expected one run"));
  CHECK_THAT(refused({{8, 0, 1, 2}, {8, 2, 1, 2}}),
             ContainsSubstring("octave = 2: expected no gap"));
  CHECK_THAT(refused({{8, std::numeric_limits<long>::max(), 1, 2}}),
             ContainsSubstring("expected a number from -1000 to 1000"));
  CHECK_THAT(refused({{8, 0, 1, 2}, {8, 1, 2, 2}}), ContainsSubstring("the same seeds"));
  CHECK_THAT(refused({{8, 0, 1, 2}, {8, 0, 2, 2}, {8, 1, 1, 2}}), ContainsSubstring("seeds = 1"));
}
