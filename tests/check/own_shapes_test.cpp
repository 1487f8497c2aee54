// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Sweeps whose sizes have curves of different shapes.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/numeric/quantile.hpp"
#include "support/catch.hpp"
#include "support/synthetic_sweep.hpp"

namespace {

using namespace scalewise::check;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

/// Four seeds of two sizes at whole octaves from -2 to 3; `rise` of the distance from the optimum, which is at 0 and at
/// `drift`. Rates are off the middle of the first size, so that its optimum in the fit follows the shared shape.
std::vector<RateRun> two_curves(double drift, double noise,
                                const std::function<double(long size, double v)>& rise) {
  std::vector<RateRun> runs;
  for (const long size : {32L, 64L}) {
    for (int o = -2; o <= 3; ++o) {
      for (long s = 1; s <= 4; ++s) {
        const double extra = noise * std::sin(static_cast<double>(5 * s + size) + 11 * o);
        runs.push_back({size, static_cast<double>(o), s,
                        2 + rise(size, o - (size == 32 ? 0 : drift)) + extra});
      }
    }
  }
  return runs;
}

double differing(long size, double v) {
  const double v2 = v * v;
  return size == 32 ? 0.05 * v2 - 0.008 * v2 * v : 0.1 * v2 + 0.03 * v2 * v;
}

Verdict verdict_with(double drift, double own_drift) {
  Transfer transfer =
      analyse_transfer(two_curves(drift, 0, [](long, double v) { return 0.05 * v * v; }));
  transfer.own_drift = own_drift;
  return judge(transfer, "width").verdict;
}

}  // namespace

TEST_CASE("Where the curves of sizes differ in shape, the drift of each size's own has to agree") {
  const Transfer still = analyse_transfer(two_curves(0, 0.002, differing));
  REQUIRE(still.own_drift);
  CHECK_THAT(*still.own_drift, WithinAbs(0, 0.03));
  CHECK_THAT(still.sizes[1].own.value().curvature, WithinAbs(0.1, 0.005));
  CHECK_THAT(still.sizes[1].own.value().third, WithinAbs(0.03, 0.005));
  CHECK(still.drift.high < -drift_tolerance);
  const TransferVerdict undecided = judge(still, "width");
  CHECK(undecided.verdict == Verdict::inconclusive);
  CHECK_THAT(undecided.reason,
             ContainsSubstring("; but the curves of the sizes differ in shape, and fits of each "
                               "size alone give a drift of 0.0"));
  const Transfer falling = analyse_transfer(two_curves(-1, 0.002, differing));
  CHECK_THAT(falling.own_drift.value_or(0), WithinAbs(-1, 0.03));
  CHECK(judge(falling, "width").verdict == Verdict::fail);
}

TEST_CASE("Both drifts of a verdict lie on one side of the tolerance") {
  CHECK(verdict_with(0, 0.29) == Verdict::pass);
  CHECK(verdict_with(0, 0.31) == Verdict::inconclusive);
  CHECK(verdict_with(0, -0.31) == Verdict::inconclusive);
  CHECK(verdict_with(-0.8, -0.31) == Verdict::fail);
  CHECK(verdict_with(-0.8, 0.5) == Verdict::inconclusive);
}

TEST_CASE("Curves of one shape are seldom taken for others") {
  // One of a hundred by its definition. Of 200 sweeps 2 ± 1.4, so at most 6 in three standard deviations.
  int differ = 0;
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    differ += analyse_transfer(drawn({.drift = 0.1, .third = 0}, draw)).own_drift ? 1 : 0;
  }
  CAPTURE(differ);
  CHECK(differ <= 6);
}

TEST_CASE("A ratio of variances is as rare as its normal deviate") {
  // Upper points of Fisher's distribution as tables print them, of 1 and 5 %.
  using scalewise::numeric::normal_deviate_of_ratio;
  CHECK_THAT(normal_deviate_of_ratio(7.559, 2, 10), WithinAbs(2.326, 0.04));
  CHECK_THAT(normal_deviate_of_ratio(4.431, 4, 20), WithinAbs(2.326, 0.03));
  CHECK_THAT(normal_deviate_of_ratio(2.988, 6, 100), WithinAbs(2.326, 0.03));
  CHECK_THAT(normal_deviate_of_ratio(3.838, 4, 8), WithinAbs(1.645, 0.07));
  CHECK_THAT(normal_deviate_of_ratio(8.941, 6, 3), WithinAbs(1.645, 0.41));
}
