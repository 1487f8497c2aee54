// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Slopes and their errors, on curves that are drawn with slopes that are known.

#include "scalewise/check/growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include "scalewise/numeric/quantile.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"
#include "support/coverage.hpp"

using namespace scalewise;
using namespace scalewise::check;
using scalewise::test::Coverage;

namespace {

/// Runs of 16, 8, 4 and 2 seeds at sizes 32 to 256 with the slope -0.5; `bend` and `seed_effect` are
/// standard deviations.
SizeCurve drawn(std::uint64_t number, double scatter, double bend, double seed_effect = 0) {
  numeric::RandomStream stream(number, "curve");
  const double root = bend * 0.1 / 0.3 * stream.normal();
  const double first = bend * stream.normal();
  std::vector<double> effects(16);
  for (double& effect : effects) effect = seed_effect * stream.normal();
  Records::Runs runs;
  std::uint64_t seeds = 16;
  for (const long n : {32L, 64L, 128L, 256L}) {
    const double ratio = static_cast<double>(n) / 32;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const double log = -0.5 * std::log(ratio) + root / std::sqrt(ratio) + first / ratio +
                         effects[seed] + scatter * std::pow(ratio, -0.4) * stream.normal();
      runs[{n, seed}] = {std::exp(log), std::exp(2 * log), 1};
    }
    seeds /= 2;
  }
  return curve_of({Signal::value, "logits"}, 0, runs);
}

bool holds(const Growth& growth, double z) {
  return std::abs(numeric::normal_deviate((growth.slope + 0.5) / growth.error, growth.degrees)) <=
         z;
}

}  // namespace

TEST_CASE("Errors of slopes hold the slope as often as they say", "[check]") {
  // Of 4000 draws a right interval holds it in 3800 ± 14 at 95 %, and in 3989 ± 3.3 at 3 deviates;
  // Coverage accepts what happens but once in a million.
  const auto held = [](double bend, const Bending& prior, double z) {
    int count = 0;
    for (std::uint64_t draw = 0; draw < 4000; ++draw) {
      const SizeCurve curve = drawn(draw, 0.1, bend);
      if (holds(growth_of(curve, scatter_of(curve, 0.8), prior), z)) ++count;
    }
    return count;
  };
  CHECK(Coverage(4000, 0.95).accepts(held(0, {}, 1.959964)));
  CHECK(Coverage(4000, 0.9973).accepts(held(0, {}, 3)));
  CHECK(Coverage(4000, 0.95).accepts(held(0.3, {0.1, 0.3}, 1.959964)));
  CHECK(Coverage(4000, 0.9973).accepts(held(0.3, {0.1, 0.3}, 3)));
  // The control: bending that is not accounted for.
  CHECK_FALSE(Coverage(4000, 0.95).accepts(held(0.3, {}, 1.959964)));
}

TEST_CASE("Tails of bending widen the error of rare deviations and leave that of seeds alone") {
  const SizeCurve curve = drawn(1, 0.1, 0.3);
  const Scatter scatter = scatter_of(curve, 0.8);
  const Growth normal = growth_of(curve, scatter, {0.1, 0.3});
  const Growth heavy = growth_of(curve, scatter, {0.1, 0.3, 1.5});
  CHECK(heavy.slope == normal.slope);
  CHECK(heavy.error == normal.error);
  CHECK(std::abs(normal.tail_error - normal.error) < 1e-12);
  const double seeds = std::pow(heavy.scatter, 2);
  CHECK(std::abs(std::pow(heavy.tail_error, 2) - seeds -
                 2.25 * (std::pow(heavy.error, 2) - seeds)) < 1e-12);
  const Growth straight = growth_of(curve, scatter, {0, 0, 1.5});
  CHECK(std::abs(straight.tail_error - straight.error) < 1e-12);
}

TEST_CASE("Two sizes have the slope between them, with the error of a difference") {
  Records::Runs runs;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    runs[{16, seed}] = {1, 1, 1};
    runs[{64, seed}] = {3, 9, 1};
  }
  const SizeCurve curve = curve_of({Signal::value, "logits"}, 0, runs);
  const Growth growth = growth_of(curve, {0.04, 10, 0.8}, {});
  CHECK(std::abs(growth.slope - std::log(3.0) / std::log(4.0)) < 1e-12);
  // Variances 0.04/3 and 0.04 4^-0.8 / 3.
  const double error = std::sqrt(0.04 / 3 * (1 + std::pow(4.0, -0.8))) / std::log(4.0);
  CHECK(std::abs(growth.error - error) < 1e-12);
  CHECK(std::abs(growth.last - growth.slope) < 1e-12);
  CHECK(growth.degrees == 10);
}

TEST_CASE("What runs of one seed have in common cancels within seeds") {
  int held = 0;
  double widest = 0;
  for (std::uint64_t draw = 0; draw < 4000; ++draw) {
    const auto growth = growth_within_seeds(drawn(draw, 0, 0, 3));
    REQUIRE(growth);
    CHECK(std::abs(growth->slope + 0.5) < 1e-12);
    widest = (std::max)(widest, growth->error);
  }
  CHECK(widest < 1e-3);  // what epsilon and rounding may do
  // Equal scatter at all sizes has exactly Student's interval; 15 runs beyond the seeds and a slope.
  for (std::uint64_t draw = 0; draw < 4000; ++draw) {
    numeric::RandomStream stream(draw, "within");
    Records::Runs runs;
    for (const long n : {32L, 64L, 128L, 256L}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const double log = -0.5 * std::log(static_cast<double>(n)) + 0.1 * stream.normal();
        runs[{n, seed}] = {std::exp(log), std::exp(2 * log), 1};
      }
    }
    const auto growth = growth_within_seeds(curve_of({Signal::value, "logits"}, 0, runs));
    CHECK(growth->degrees == 14);
    if (holds(*growth, 1.959964)) ++held;
  }
  CHECK(Coverage(4000, 0.95).accepts(held));
  // One size per seed tells nothing within seeds.
  Records::Runs apart;
  for (const long n : {32L, 64L, 128L}) apart[{n, static_cast<std::uint64_t>(n)}] = {1, 1, 1};
  CHECK_FALSE(growth_within_seeds(curve_of({Signal::value, "logits"}, 0, apart)));
}

TEST_CASE("Deviates of Student's t are as rare as the normal ones they become") {
  // Two-sided 95 % and 99.9 % quantiles of the tables.
  CHECK(std::abs(numeric::normal_upper_quantile(0.025) - 1.959963985) < 1e-9);
  CHECK(std::abs(numeric::normal_upper_quantile(0.0005) - 3.290526731) < 1e-9);
  for (const auto& [degrees, t95, t999, accuracy] : {std::tuple{3.0, 3.182446, 12.92398, 0.07},
                                                     {5.0, 2.570582, 6.868827, 0.03},
                                                     {10.0, 2.228139, 4.586894, 0.01},
                                                     {30.0, 2.042272, 3.645959, 0.01}}) {
    CHECK(std::abs(numeric::normal_deviate(t95, degrees) - 1.959964) < accuracy);
    CHECK(std::abs(numeric::normal_deviate(t999, degrees) - 3.290527) < accuracy);
    CHECK(numeric::normal_deviate(-t95, degrees) == -numeric::normal_deviate(t95, degrees));
  }
  CHECK(std::isnan(numeric::normal_upper_quantile(0)));
  CHECK(std::isnan(numeric::normal_upper_quantile(0.6)));
}

TEST_CASE("A curve that is not of the form that is fitted has a larger error") {
  // Four sizes have 2 degrees of freedom: χ² is 2 ± 2, and up to 2 + 3·2 nothing happens.
  CHECK(check::detail::misfit_factor(0, 4) == 1);
  CHECK(check::detail::misfit_factor(2 + 3 * 2, 4) == 1);
  CHECK(std::abs(check::detail::misfit_factor(4 * (2 + 3 * 2), 4) - 2) < 1e-12);
  CHECK(check::detail::misfit_factor(1e9, 2) == 1);
  // Flat from 32 to 64 and then falling by a half per octave, with a scatter of a hundredth: no slope
  // with bending of this size is near. The control has the slope of a half throughout.
  const auto growth = [](double first) {
    Records::Runs runs;
    const double logs[] = {first, -std::log(2.0) / 2, -std::log(4.0) / 2, -std::log(8.0) / 2};
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      for (int i = 0; i < 4; ++i) {
        const double log = logs[i] + (seed % 2 == 0 ? 0.01 : -0.01);
        runs[{32L << i, seed}] = {std::exp(log), std::exp(2 * log), 1};
      }
    }
    const SizeCurve curve = curve_of({Signal::gradient, "query"}, 0, runs);
    return growth_of(curve, scatter_of(curve, 0), {0.01, 0.03});
  };
  CHECK(growth(-std::log(2.0) / 2).error > 5 * growth(0).error);
  CHECK(std::abs(growth(0).slope + 0.5) < 1e-9);
}
