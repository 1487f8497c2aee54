// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Sweeps whose sizes have curves of different shapes.

#include <cmath>
#include <functional>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "support/catch.hpp"
#include "support/synthetic_sweep.hpp"

namespace {

using namespace scalewise::check;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

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

}  // namespace

TEST_CASE("Where the curves of sizes differ in shape, each has its own") {
  for (const double drift : {0.0, -1.0}) {
    const Transfer found = analyse_transfer(two_curves(drift, 0.002, differing));
    CHECK_THAT(found.drift.value, WithinAbs(drift, 0.03));
    CHECK_THAT(found.sizes[0].shape.curvature, WithinAbs(0.05, 0.005));
    CHECK_THAT(found.sizes[1].shape.curvature, WithinAbs(0.1, 0.005));
    CHECK_THAT(found.sizes[1].shape.third, WithinAbs(0.03, 0.005));
    CHECK(judge(found, "width").verdict == (drift == 0 ? Verdict::pass : Verdict::fail));
  }
}

TEST_CASE("A shape is nearer to the mean one the less its losses tell") {
  // Rates at -1, 0 and 1 say nothing of a third order, and each seed's curvature c is exact: 0.06 below its size's, that
  // or 0.06 above. With weights of ½, 1 and ½ the sum that belongs to c is ½ for a seed, 1.5 for a size; noise counts
  // 1.45 times in it, as what three seeds share.
  std::vector<RateRun> runs;
  for (const long size : {16L, 32L, 64L, 128L}) {
    for (const double o : {-1.0, 0.0, 1.0}) {
      for (const long s : {-1L, 0L, 1L}) {
        const double curvature = (size == 128 ? 0.08 : 0.05) + 0.06 * static_cast<double>(s);
        runs.push_back({size, o, s, 2 + curvature * o * o});
      }
    }
  }
  // h: the share of the distance to the mean that the mean takes. 12 losses beyond offsets and slopes, less 4 (1 - h)
  // for the sizes' shapes and h for the mean.
  const double mean = 0.0575;
  const double between = 0.2 * 0.2 * mean * mean;
  double h = 0.5;
  for (int i = 0; i < 100; ++i) {
    const double rest = 4 * 0.0036 + 1.5 * h * h * (3 * 0.0075 * 0.0075 + 0.0225 * 0.0225);
    h = 1 / (1 + 1.5 / 1.45 * between * (8 + 3 * h) / rest);
  }
  const Transfer found = analyse_transfer(runs);
  CHECK_THAT(found.curvature, WithinRel(mean, 1e-6));
  CHECK_THAT(found.sizes[0].shape.curvature, WithinRel(mean - (1 - h) * 0.0075, 1e-6));
  CHECK_THAT(found.sizes[3].shape.curvature, WithinRel(mean + (1 - h) * 0.0225, 1e-6));
  CHECK_THAT(found.sizes[3].shape.third, WithinAbs(0, 1e-12));
}

TEST_CASE("A size whose losses have no minimum is left out, and said to be") {
  const auto peak = [](long size, double v) { return (size == 32 ? 0.05 : -0.05) * v * v; };
  const Transfer found = analyse_transfer(two_curves(0, 0.0005, peak));
  CHECK_FALSE(found.sizes[1].interior);
  const TransferVerdict verdict = judge(found, "width");
  CHECK(verdict.verdict == Verdict::inconclusive);
  CHECK_THAT(verdict.reason, ContainsSubstring("at width 64"));
  const Transfer none =
      analyse_transfer(two_curves(0, 0.0005, [](long, double v) { return -0.05 * v * v; }));
  CHECK_FALSE(none.curved);
  CHECK(judge(none, "width").verdict == Verdict::inconclusive);
}
