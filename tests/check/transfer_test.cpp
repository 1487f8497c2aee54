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
#include "scalewise/check/transfer_chance.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/synthetic_sweep.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using namespace scalewise::test;

constexpr double diverged = std::numeric_limits<double>::infinity();
using LossOf = std::function<double(long size, double octave, long seed)>;

/// Runs at all whole octaves from `low` to `high`.
std::vector<RateRun> runs_of(const std::vector<long>& sizes, long low, long high, long seeds,
                             const LossOf& loss) {
  std::vector<RateRun> runs;
  for (const long size : sizes) {
    for (long o = low; o <= high; ++o) {
      const auto octave = static_cast<double>(o);
      for (long s = 1; s <= seeds; ++s) runs.push_back({size, octave, s, loss(size, octave, s)});
    }
  }
  return runs;
}

TransferVerdict judged(const std::vector<RateRun>& runs) {
  return judge(analyse_transfer(runs), "width");
}

/// The result of an analysis with these intervals.
Transfer with_drift(IntervalEstimate drift, IntervalEstimate regret = {}, double expected = 0) {
  Transfer transfer{.expected = expected, .curved = true};
  SizeTransfer size{.seeds = 4, .trained = true, .interior = true};
  size.loss = 2;  // 2 % are 0.04
  size.regret = {};
  for (const long width : {16L, 32L, 64L}) {
    size.size = width;
    size.weight = 0.5 * octaves_above(width, 32);
    transfer.sizes.push_back(size);
  }
  transfer.sizes.back().regret = regret;
  transfer.drift = drift;
  return transfer;
}

}  // namespace

TEST_CASE("Without noise the drift is exact, with an interval of next to no width") {
  for (const double drift : {-1.0, -0.1, 0.0, 0.5}) {
    for (const double third : {0.0, 0.006}) {
      const auto runs = runs_of({16, 32, 64}, -6, 6, 3, [&](long size, double o, long s) {
        return bowl(o, 0.2 + drift * octaves_above(size, 32), third) + static_cast<double>(s);
      });
      const Transfer found = analyse_transfer(runs);
      CHECK_THAT(found.drift.value, WithinAbs(drift, 1e-9));
      CHECK_THAT(found.drift.high - found.drift.low, WithinAbs(0, 1e-4));  // of the noise assumed
      CHECK_THAT(found.sizes[2].optimum.value, WithinAbs(0.2 + drift, 1e-9));
      CHECK_THAT(found.curvature, WithinAbs(0.05, 1e-9));
      const bool small = std::fabs(drift) < 0.3;
      CHECK(judge(found, "width").verdict == (small ? Verdict::pass : Verdict::fail));
      // Where the drift is what is expected, nothing is lost.
      const Transfer expected = analyse_transfer(runs, drift);
      CHECK(judge(expected, "width").verdict == Verdict::pass);
      CHECK_THAT(expected.sizes[2].regret.value, WithinAbs(0, 1e-9));
    }
  }
}

TEST_CASE("The joint fit is that of a general least-squares solver") {
  // Expected: numpy.linalg.lstsq on the whole design matrix, a column per offset, slope, mean and deviation of the
  // shape and a row per prior, repeated about the optima it finds; covariances from the inverse of its normal matrix,
  // degrees from the trace of its hat matrix; how optima respond to shapes by differences; Welch's degrees of the
  // seeds are 2.41, and t(0.975; 2) = 4.302653.
  std::vector<RateRun> runs;
  for (const long size : {16L, 32L, 64L}) {
    const double x = octaves_above(size, 16);
    for (long seed = 1; seed <= (size == 16 ? 4 : 3); ++seed) {
      const auto s = static_cast<double>(seed);
      for (const double o : rates) {
        const double optimum = 0.2 - 0.3 * x + 0.15 * std::sin(3 * s + x);
        const double noise = 0.1 * std::sin(s * x + s) + 0.004 * std::sin(17 * o + 5 * s + x);
        runs.push_back({size, o, seed, bowl(o, optimum, 0.006) + noise});
      }
    }
  }
  const RateFit fit = fit_rates(rate_curves(runs));
  const Transfer found = analyse_transfer(runs);
  CHECK_THAT(fit.mean.curvature, WithinRel(0.05037110343194387, 1e-8));
  CHECK_THAT(fit.mean.third, WithinRel(0.00493225801895561, 1e-8));
  CHECK_THAT(fit.noise, WithinRel(7.771617138380772e-06, 1e-7));
  CHECK_THAT(std::sqrt(fit.mean_error.curvature), WithinRel(0.0058689481752203865, 1e-8));
  CHECK_THAT(fit.sizes[0].shape.curvature, WithinRel(0.04999909533763746, 1e-8));
  CHECK_THAT(fit.sizes[2].shape.third, WithinRel(0.006226209069957536, 1e-8));
  CHECK_THAT(fit.sizes[0].scatter, WithinAbs(0.062435600, 1e-8));
  CHECK_THAT(fit.sizes[2].scatter, WithinAbs(0.169426539, 1e-8));
  // Weights move with the optimum, which the differences see and the fit does not count.
  CHECK_THAT(fit.sizes[0].leverage.curvature, WithinRel(-1.3990314853551398, 5e-3));
  CHECK_THAT(fit.sizes[2].leverage.third, WithinRel(16.008650734980478, 5e-3));
  CHECK_THAT(found.drift.value, WithinRel(-0.31592413330194913, 1e-8));
  CHECK_THAT(found.drift.high - found.drift.value,
             WithinRel(4.302652730 * 0.05260327197035837, 1e-4));
  CHECK_THAT(found.sizes[2].optimum.value, WithinAbs(-0.4431057347882502, 1e-8));
  CHECK_THAT(found.sizes[2].loss, WithinRel(2.0102668612606416, 1e-8));
}

TEST_CASE("95 % intervals hold the truth in about 95 of 100 sweeps") {
  // Of 200 sweeps an exact interval holds it in 190 ± 3.1, one of few degrees of freedom in 186 ± 3.5
  // (see transfer_slow_test.cpp, which counts 1000): 175 in three standard deviations.
  const Truth truth{.drift = 0.1, .narrowing = -0.8};
  int drift = 0, optimum = 0, regret = 0;
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    const Transfer found = analyse_transfer(drawn(truth, draw));
    drift += holds(found.drift, truth.drift) ? 1 : 0;
    optimum += holds(found.sizes[2].optimum, truth.optimum(128)) ? 1 : 0;
    regret += holds(found.sizes[2].regret, truth.regret(32, 128)) ? 1 : 0;
  }
  CAPTURE(drift, optimum, regret);
  CHECK((175 <= drift && drift < 200));
  CHECK(175 <= optimum);
  CHECK(175 <= regret);
}

TEST_CASE("The seeds that a doubtful verdict asks for decide it") {
  // An estimate of 0.1 ± 0.4 lacks 0.2 to the tolerance: four times the seeds halve its width.
  const TransferVerdict verdict = judge(with_drift({0.1, -0.3, 0.5}), "width");
  CHECK(verdict.verdict == Verdict::inconclusive);
  CHECK_THAT(verdict.factor, WithinRel(4.0, 1e-9));
  REQUIRE(verdict.more.size() == 2);  // the middle size has no weight in the slope
  CHECK(verdict.more[0].size == 16);
  CHECK(verdict.more[0].seeds == 12);
  CHECK(verdict.more[1].size == 64);
  CHECK_THAT(verdict.reason, ContainsSubstring("about 12 at width 16, 12 at width 64"));
  // Of the half of 0.4, 0.1 stays: (0.4² - 0.1²)/(0.2² - 0.1²) = 5 times; where 0.3 stays, no number would do.
  CHECK_THAT(judge(with_drift({0.1, -0.3, 0.5, 0.1}), "width").factor, WithinRel(5.0, 1e-9));
  const TransferVerdict never = judge(with_drift({0.1, -0.3, 0.5, 0.3}), "width");
  CHECK_THAT(never.reason, ContainsSubstring("too close for seeds to tell"));
  CHECK(never.more.empty());
  const TransferVerdict near = judge(with_drift({0.2999, 0.1, 0.5}), "width");
  CHECK_THAT(near.reason, ContainsSubstring("a wider range of sizes"));
  CHECK(near.more.empty());
}

TEST_CASE("The regret is that of the fitted curve, without the luck of the lowest run") {
  // The best of seven noisy rates is 1.4 standard deviations below its mean; the fit is not.
  double sum = 0;
  const Truth truth{.drift = 0, .scatter = 0, .noise = 0.02};
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const Transfer found = analyse_transfer(drawn(truth, draw));
    sum += found.sizes[2].regret.value / 300;
  }
  // c times the variance of the distance: noise gives it 0.02²/(0.1² 1.94²) 0.97 (1/4 + 1/16) = 0.0032, with 0.97 the
  // sum of w² v² and 1.94 that of w v² at these rates; third orders at most 15.5² times their variances, 1.3e-5 and 5e-6.
  CHECK(sum > 0);
  CHECK(sum < 0.05 * 0.0075);
}

TEST_CASE("An error of the shape moves the regret as a fit with another shape does") {
  // Optima off the middle of their rates, so that they follow the curvature. Seeds do not scatter.
  const auto runs = runs_of({32, 128}, -2, 2, 3, [](long size, double octave, long) {
    const double v = octave - (size == 32 ? 1.4 : -0.7);
    return 2 + 0.04 * v * v;
  });
  RateFit fit = fit_rates(rate_curves(runs));
  REQUIRE(fit.fitted);
  const auto regret = [](const RateFit& f) {
    return scalewise::check::detail::rise(f.sizes[1].shape,
                                          f.sizes[0].optimum - f.sizes[1].optimum);
  };
  const auto refitted = [&](std::size_t k, double curvature, double third) {
    RateFit moved = fit;
    moved.sizes[k].shape = moved.sizes[k].shape + CurveShape{curvature, third};
    for (int step = 0; step < 100; ++step) {
      for (SizeFit& size : moved.sizes) scalewise::check::detail::fit_seeds(moved, size);
      scalewise::check::detail::recentre(moved);
    }
    return regret(moved);
  };
  const double tiny = 1e-5;
  for (SizeFit& size : fit.sizes) size.scatter = size.noise = 0;  // a rounding error otherwise
  for (const std::size_t k : {0U, 1U}) {
    const double by_curvature = (refitted(k, tiny, 0) - refitted(k, -tiny, 0)) / (2 * tiny);
    const double by_third = (refitted(k, 0, tiny) - refitted(k, 0, -tiny)) / (2 * tiny);
    for (const bool curvature : {true, false}) {
      fit.mean_error = fit.sizes[0].own_error = fit.sizes[1].own_error = {};
      fit.sizes[k].own_error = {curvature ? 1e-12 : 0, 0, curvature ? 0 : 1e-12};
      const IntervalEstimate found = scalewise::check::detail::fitted_regret(
          fit, {1, -1}, 1, fit.sizes[0].optimum - fit.sizes[1].optimum);
      const double t = 12.7062;  // of one degree of freedom
      const double expected = t * 1e-6 * std::fabs(curvature ? by_curvature : by_third);
      CHECK_THAT(found.high - found.value, WithinRel(expected, 1e-3));
      CHECK_THAT(found.value - found.low, WithinRel(expected, 1e-3));
    }
  }
}

TEST_CASE("Far from the fit the regret is measured between the rates next to the transferred one",
          "[check]") {
  // Optima at 0.2 and -3.8. At octave 0 the seeds lose 0.1, 0.2 and 0.3 more than the curve says, at 1
  // nothing: 0.8 of it between them, at 0.2, above 0.05 × 4².
  const auto runs = runs_of({16, 32}, -6, 3, 3, [](long size, double o, long s) {
    const double extra = size == 32 && o == 0 ? 0.1 * static_cast<double>(s) : 0;
    return bowl(o, size == 16 ? 0.2 : -3.8) + extra;
  });
  const Transfer found = analyse_transfer(runs);
  CHECK_THAT(found.sizes[1].transferred, WithinAbs(0.2, 1e-9));
  CHECK_THAT(found.sizes[1].regret.value, WithinAbs(0.8 + 0.16, 1e-9));
  const double half = 4.302652730 * 0.08 / std::sqrt(3.0);  // t(0.975; 2)
  CHECK_THAT(found.sizes[1].regret.high, WithinAbs(0.96 + half, 1e-5));
  CHECK(found.sizes[0].regret.value == 0);
}

TEST_CASE("The cost of a rate far beyond all tried is not known, not infinite") {
  const auto runs = runs_of(
      {16, 32}, -6, -1, 3, [](long size, double o, long) { return bowl(o, size == 16 ? -2 : -4); });
  std::vector<RateRun> some;
  for (const RateRun& run : runs) {
    if (run.size == 16 || run.octave < -2.5) some.push_back(run);
  }
  const Transfer found = analyse_transfer(some);
  CHECK_THAT(found.drift.value, WithinAbs(-2, 1e-9));
  CHECK(std::isnan(found.sizes[1].regret.value));
  const TransferVerdict verdict = judge(found, "width", 1);
  CHECK(verdict.verdict == Verdict::fail);
  REQUIRE(verdict.not_judged.size() == 1);
  CHECK_THAT(verdict.not_judged[0],
             ContainsSubstring("at width 32 what the transferred rate costs") &&
                 ContainsSubstring("try 0.25"));
}

TEST_CASE("Regrets are judged by their interval against 2 %") {
  const auto verdict = [](double low, double high) {
    return judge(with_drift({0, -0.1, 0.1}, {(low + high) / 2, low, high}), "width").verdict;
  };
  CHECK(verdict(0, 0.039) == Verdict::pass);
  CHECK(verdict(0.02, 0.06) == Verdict::inconclusive);
  CHECK(verdict(-1, 1) == Verdict::inconclusive);
  CHECK(verdict(0.041, 0.06) == Verdict::fail);
  CHECK(verdict(diverged, diverged) == Verdict::fail);
  CHECK(judge(with_drift({0, -0.2, 0.2}, {0.05, 0.041, 0.06}), "width").verdict == Verdict::fail);
}

TEST_CASE("Verdicts on the drift") {
  const auto verdict = [](double low, double high, double expected) {
    return judge(with_drift({(low + high) / 2, low, high}, {}, expected), "width").verdict;
  };
  CHECK(verdict(-0.1, 0.29, 0) == Verdict::pass);
  CHECK(verdict(-0.1, 0.31, 0) == Verdict::inconclusive);
  CHECK(verdict(-0.31, -0.1, 0) == Verdict::inconclusive);
  CHECK(verdict(-1.1, -0.9, 0) == Verdict::fail);
  CHECK(verdict(0.31, 0.9, 0) == Verdict::fail);
  CHECK(verdict(-9, 9, 0) == Verdict::inconclusive);
  CHECK(verdict(-1.1, -0.9, -1) == Verdict::pass);
  CHECK(verdict(-0.1, 0.1, -1) == Verdict::fail);
  CHECK(verdict(-diverged, diverged, 0) == Verdict::inconclusive);
}

TEST_CASE("A sweep that could go on stops early only for three standard errors") {
  const auto verdict = [](double half) {
    return judge(widened(with_drift({0, -half, half}), early_stop), "width").verdict;
  };
  CHECK(verdict(0.199) == Verdict::pass);
  CHECK(verdict(0.201) == Verdict::inconclusive);
}

TEST_CASE("Too little to judge is inconclusive, and says which runs are needed") {
  const LossOf flat = [](long, double o, long) { return bowl(o, 0.1); };
  CHECK(judged(runs_of({16, 32}, -2, 2, 3, flat)).verdict == Verdict::pass);
  for (const auto& few : {runs_of({16}, -2, 2, 3, flat), std::vector<RateRun>{}}) {
    CHECK(judged(few).verdict == Verdict::inconclusive);
    CHECK_THAT(judged(few).reason, ContainsSubstring("a drift needs two sizes"));
    CHECK(std::isnan(analyse_transfer(few).drift.value));
  }
  const auto says = [](const LossOf& loss, const std::string& why) {
    const TransferVerdict verdict =
        judge(analyse_transfer(runs_of({16, 32}, -2, 2, 3, loss)), "width", 0.01);
    CHECK(verdict.verdict == Verdict::inconclusive);
    CHECK_THAT(verdict.reason, ContainsSubstring(why));
  };
  says([](long, double o, long) { return bowl(o, 4); }, "try rates above 0.04");
  says([](long, double o, long) { return bowl(o, -4); }, "try rates below 0.0025");
  says([&](long n, double o, long s) { return n == 32 && o > 0 ? diverged : flat(n, o, s); },
       "at width 32 the rate above the lowest loss diverges: try finer steps above 0.01");
  says([&](long n, double o, long s) { return n == 32 ? std::nan("") : flat(n, o, s); },
       "at width 32 every rate diverged");
  says(
      [](long n, double o, long s) {  // noise alone
        return 2 + 0.01 * std::sin(static_cast<double>(7 * n + 13 * s) + 31 * o);
      },
      "tried: try rates");
  says([](long, double, long) { return 2.0; },
       "at width 16 the losses of all rates are the same: there is no minimum");
  Transfer left_out = with_drift({0, -0.1, 0.1});
  left_out.sizes[1].interior = false;  // though its lowest loss lies between two others
  CHECK_THAT(judge(left_out, "width", 0.01).reason,
             ContainsSubstring("at width 32 no optimum is near the lowest loss: try more rates "
                               "around 0.01"));
}

TEST_CASE("No rate is asked for where no fit transfers one") {
  const auto huge = [](long n, double o, long) { return n == 32 && o == -2 ? 1e308 : bowl(o, 0); };
  const Transfer found = analyse_transfer(runs_of({8, 16, 32}, -3, 1, 1, huge));
  CHECK(found.sizes[0].interior);
  CHECK(std::isnan(found.sizes[0].transferred));
  for (const std::string& line : judge(found, "width", 1).not_judged)
    CHECK_THAT(line, !ContainsSubstring("nan"));
}

TEST_CASE("Messages name what was tuned") {
  const auto reason = [](const LossOf& loss) {
    return judge(analyse_transfer(runs_of({16, 32}, -2, 2, 3, loss)), "depth", 0.01, "weight decay")
        .reason;
  };
  CHECK_THAT(reason([](long, double o, long) { return bowl(o, 0.1); }),
             ContainsSubstring("the optimal weight decay drifts by 0.00") &&
                 ContainsSubstring("at depth 32 the transferred weight decay costs"));
  CHECK_THAT(reason([](long, double o, long) { return bowl(o, 4); }),
             ContainsSubstring("edge of the weight decays tried: try weight decays above 0.04"));
}

TEST_CASE("A transferred rate that diverges with one seed is a failure") {
  // Over eight octaves of size the optimum moves from 1.52 to 0.4: -0.14 octaves per octave.
  const TransferVerdict verdict =
      judged(runs_of({16, 4096}, -4, 5, 3, [](long n, double o, long s) {
        return n == 4096 && s == 2 && o >= 2 ? diverged : bowl(o, n == 4096 ? 0.4 : 1.52);
      }));
  CHECK(verdict.verdict == Verdict::fail);
  CHECK_THAT(verdict.reason, ContainsSubstring("at width 4096 the transferred rate diverges"));
}

TEST_CASE("Sizes may have different seeds, and seeds fewer rates") {
  const Truth truth{.drift = -0.3, .scatter = 0, .noise = 0};
  std::vector<RateRun> runs = drawn(truth, 1);
  CHECK_THAT(analyse_transfer(runs).drift.value, WithinAbs(-0.3, 1e-9));
  runs.erase(runs.begin() + 7);  // a rate of the second seed of the first size
  runs.push_back({32, 9, 1, diverged});
  CHECK_THAT(analyse_transfer(runs).drift.value, WithinAbs(-0.3, 1e-9));
  CHECK(analyse_transfer(runs).sizes[0].seeds == 16);
  CHECK(analyse_transfer(runs).sizes[2].seeds == 4);
}

TEST_CASE("Means over seeds that lack rates are those of the rates, without the seeds' luck") {
  // Seeds lie 0.5 apart, and each lacks a rate: the means still differ as the bowl does.
  std::vector<RateRun> runs = runs_of({8}, -2, 2, 3, [](long, double o, long s) {
    return bowl(o, 0) + 0.5 * static_cast<double>(s);
  });
  std::erase_if(runs, [](const RateRun& run) {
    return run.octave == static_cast<double>(run.seed) - 2;  // -1, 0 and 1
  });
  const auto means = mean_losses(rate_curves(runs)[0]);
  for (const double o : {-2.0, -1.0, 1.0, 2.0}) {
    CHECK_THAT(means.at(o) - means.at(0), WithinAbs(bowl(o, 0) - bowl(0, 0), 1e-9));
  }
}

TEST_CASE("The order of runs does not matter, to the last bit") {
  auto runs = drawn({.drift = -0.1}, 5);
  const Transfer one = analyse_transfer(runs);
  std::reverse(runs.begin(), runs.end());
  const Transfer other = analyse_transfer(runs);
  CHECK(one.drift.value == other.drift.value);
  CHECK(one.drift.low == other.drift.low);
  CHECK(one.sizes[2].regret.high == other.sizes[2].regret.high);
}

TEST_CASE("Runs that make no sweep are refused") {
  const auto refused = [](const std::vector<RateRun>& runs) {
    return error_message([&] { analyse_transfer(runs); });
  };
  CHECK_THAT(refused({{0, 0, 1, 2}}), ContainsSubstring("size = 0"));
  CHECK_THAT(refused({{8, 0, 1, 2}, {8, 0, 1, 2}}),
             ContainsSubstring("seed = 1: expected one run"));
  for (const double octave : {std::nan(""), 1001.0, -diverged}) {
    CHECK_THAT(refused({{8, octave, 1, 2}}),
               ContainsSubstring("expected a number from -1000 to 1000"));
  }
}

TEST_CASE("The chance of a verdict grows with the seeds and the range of sizes") {
  const auto chance = [](const std::vector<long>& sizes, long seeds) {
    std::vector<SweepSize> all;
    for (const long size : sizes) all.push_back({size, seeds});
    return chance_of_verdict(all);
  };
  // Shares of a million draws of drifts and widths of intervals; nine points instead are off by up to 0.01.
  CHECK_THAT(chance({32, 64}, 2), WithinAbs(0.400, 0.01));
  CHECK_THAT(chance({32, 64, 128}, 3), WithinAbs(0.792, 0.01));
  CHECK_THAT(chance({32, 64, 128}, 6), WithinAbs(0.843, 0.01));
  CHECK_THAT(chance({32, 64, 128, 256}, 3), WithinAbs(0.925, 0.01));
  CHECK_THAT(chance({32, 64, 128}, 1000000), WithinAbs(0.901, 0.01));
  CHECK(chance({32}, 10) == 0);
  CHECK(chance({32, 64}, 1) == 0);
}
