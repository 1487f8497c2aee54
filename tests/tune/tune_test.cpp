// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"
#include "tune/quadratic.hpp"
#include "tune/search.hpp"
#include "tune/space.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::tune;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using scalewise::test::error_message;

const double failed = std::numeric_limits<double>::infinity();

/// Of a search that is run to its end, in any order; `loss` of a trial.
template <class Loss>
Losses run_all(long draws, long steps, const Loss& loss) {
  Losses losses;
  for (;;) {
    const Search now = searched(draws, steps, losses);
    if (now.missing.empty()) return losses;
    for (const Trial& trial : now.missing) losses[trial] = loss(trial);
  }
}

TEST_CASE("Sobol's points are those of the published direction numbers", "[tune]") {
  // As Joe and Kuo's program sobol.cc prints them for new-joe-kuo-6.21201: the first points, in Gray order.
  const std::vector<std::vector<double>> published{{0, 0, 0},
                                                   {0.5, 0.5, 0.5},
                                                   {0.75, 0.25, 0.25},
                                                   {0.25, 0.75, 0.75},
                                                   {0.375, 0.375, 0.625},
                                                   {0.875, 0.875, 0.125},
                                                   {0.625, 0.125, 0.875},
                                                   {0.125, 0.625, 0.375}};
  // A digital shift is taken back by that of the first point, which is at zero.
  const auto bits = [](double x) { return static_cast<std::uint32_t>(std::floor(x * 0x1p32)); };
  const std::vector<double> shift = sobol_point(0, 3, 7);
  for (std::uint32_t i = 0; i < published.size(); ++i) {
    const std::vector<double> point = sobol_point(i, 3, 7);
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(static_cast<double>(bits(point[j]) ^ bits(shift[j])) * 0x1p-32 == published[i][j]);
    }
  }
}

TEST_CASE("Every axis is filled evenly, and every pair of the first two", "[tune]") {
  constexpr std::uint32_t count = 64;
  std::vector<std::set<int>> cells(most_axes);
  std::set<int> squares;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::vector<double> point = sobol_point(i, most_axes, 3);
    for (std::size_t j = 0; j < most_axes; ++j) cells[j].insert(static_cast<int>(point[j] * count));
    squares.insert(static_cast<int>(point[0] * 8) * 8 + static_cast<int>(point[1] * 8));
  }
  for (const std::set<int>& axis : cells) CHECK(axis.size() == count);
  CHECK(squares.size() == count);
  CHECK(sobol_point(5, 2, 1) != sobol_point(5, 2, 2));
}

TEST_CASE("A space is read, and what is none is refused", "[tune]") {
  const Space space = space_of({"logits=0.5:8", "rate=1e-3:0.03,query.std=.5:2"});
  REQUIRE(space.size() == 3);
  CHECK(space[1].name == "rate");
  CHECK(space[0].value(0.5) == 2);
  CHECK(space[1].high == 0.03);
  for (const char* bad : {"", "logits", "logits=2", "logits=2:1", "logits=0:1", "logits=1:x",
                          "logits=1:2,logits=1:3"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(space_of({bad}), InvalidInput);
  }
}

TEST_CASE("An axis that others replace is refused", "[tune]") {
  const auto refusal = [](const char* words, Optimizer optimizer = adamw, bool tied = false) {
    Shape shape = preset_shape("gpt2");
    shape.tied_head = tied;
    const Plan plan =
        make_plan(MaximalUpdate{}, {.model = shape, .base = shape, .optimizer = optimizer});
    return error_message([&] { require_independent(plan, space_of({words})); });
  };
  CHECK(refusal(
            "logits=1:2,embedding.rate=1:2,hidden.std=1:2,scores=1:2,rate=1:2,hidden.decay=1:2") ==
        "no error");
  CHECK_THAT(refusal("vector.std=1:2"), ContainsSubstring("one that changes training"));
  CHECK_THAT(refusal("rate=1:2,embedding.rate=1:2,vector.rate=1:2,hidden.rate=1:2,output.rate=1:2"),
             ContainsSubstring("output.rate"));
  CHECK_THAT(refusal("output.rate=1:2,output.std=1:2,output.decay=1:2,logits=1:2"),
             ContainsSubstring("as output.rate, output.std, output.decay do"));
  CHECK(refusal("output.rate=1:2,logits=1:2") == "no error");
  CHECK_THAT(refusal("output.rate=1:2", adamw, true), ContainsSubstring("its head is tied"));
  CHECK_THAT(refusal("batch=1:2"), ContainsSubstring("this one is a record: --constant batch=…"));
}

TEST_CASE("A draw around another lies in a third of the box, which does not leave it", "[tune]") {
  // By hand: the middle of the third is the other point, unless that is closer to an edge than a sixth of the box.
  for (long other = 0; other < 40; ++other) {
    const std::vector<double> middle = place_of({other}, 4, 5);
    for (long i = 0; i < 8; ++i) {
      const std::vector<double> whole = place_of({i}, 4, 5), near_it = place_of({i, other}, 4, 5);
      for (std::size_t j = 0; j < 4; ++j) {
        const double low = middle[j] < 1.0 / 6   ? 0
                           : middle[j] > 5.0 / 6 ? 2.0 / 3
                                                 : middle[j] - 1.0 / 6;
        CHECK_THAT(near_it[j], WithinAbs(low + whole[j] / 3, 1e-12));
      }
    }
  }
}

TEST_CASE("A search is a function of the finished runs", "[tune]") {
  const auto loss = [](const Trial& t) {
    const bool nearer = t.draw.around >= 0;
    return 2 + std::abs(static_cast<double>(t.draw.index) - 7.2) * 0.1 +
           (nearer ? (t.draw.index == 12 ? -0.6 : 0.05) : 0) +
           0.01 * static_cast<double>(t.seed % 3);
  };
  const Losses all = run_all(20, 100, loss);
  const Search done = searched(20, 100, all);
  CHECK(done.best == Draw{12, 7});  // 1.88, below 2.02 of 7 in the whole box
  REQUIRE(done.stages.size() == 6);
  CHECK(done.stages[0].trials.size() == 20);
  CHECK(done.stages[0].trials[3] == Trial{{3}, 1, 25});
  CHECK(done.stages[1].trials.size() == 7);
  CHECK(done.stages[2].trials.size() == 20);
  CHECK(done.stages[2].trials[3] == Trial{{3, 7}, 1, 25});
  CHECK(done.stages[3].trials.size() == 7);
  CHECK(done.stages[4].trials.size() == 12);
  CHECK(done.stages[5].trials ==
        std::vector<Trial>{
            {{12, 7}, 4, 100}, {{12, 7}, 5, 100}, {{12, 7}, 6, 100}, {{12, 7}, 7, 100}});
  // The mean of seeds 4 to 7, and Student's quantile for three degrees of freedom.
  CHECK_THAT(done.loss, WithinAbs(1.88 + (0.01 + 0.02 + 0 + 0.01) / 4, 1e-12));
  CHECK_THAT(done.high - done.loss, WithinAbs(3.18 * std::sqrt(2e-4 / 3 / 4), 1e-4));
  // Missing runs are asked for, whatever else is there.
  for (const auto& [trial, value] : all) {
    Losses some = all;
    some.erase(trial);
    CHECK(searched(20, 100, some).missing == std::vector<Trial>{trial});
  }
  // More draws use the runs of fewer.
  for (const Trial& trial : searched(30, 100, all).missing) CHECK(trial.draw.index >= 20);
}

TEST_CASE("Draws that fail are not chosen, and the best one says where it fails", "[tune]") {
  const auto some = [](const Trial& t) {
    return t.draw.index % 2 == 0 ? failed : 3 + 0.1 * static_cast<double>(t.draw.index);
  };
  CHECK(searched(12, 8, run_all(12, 8, some)).best.index == 1);
  const Losses none = run_all(12, 8, [](const Trial&) { return failed; });
  CHECK(none.size() == 12);
  CHECK(searched(12, 8, none).best.index == -1);
  const auto in_the_whole = [](const Trial& t) { return t.draw.around < 0 ? 3 : failed; };
  CHECK(searched(12, 8, run_all(12, 8, in_the_whole)).best == Draw{0});
  const Search late =
      searched(12, 8, run_all(12, 8, [](const Trial& t) { return t.seed == 6 ? failed : 3; }));
  CHECK(late.confirmed == 3);
  CHECK(late.loss == 3);
  CHECK(std::isinf(late.high));
}

TEST_CASE("A budget is not exceeded", "[tune]") {
  for (const long budget : {12L, 16L, 24L, 84L, 1000L}) {
    const Losses losses = run_all(draws_of(budget), 40, [](const Trial& t) {
      return 3 + 1e-3 * static_cast<double>(t.draw.index);
    });
    CHECK(static_cast<long>(losses.size()) <= budget);
    CHECK(static_cast<long>(losses.size()) > budget - 8);
  }
}

TEST_CASE("A quadratic says what matters and where the best may be", "[tune]") {
  numeric::RandomStream stream(1, "noise");
  std::vector<Point> points;
  for (std::uint32_t i = 0; i < 80; ++i) {
    std::vector<double> at = sobol_point(i, 3, 1);
    for (double& x : at) x = 2 * x - 1;
    const double rise =
        0.4 * (at[0] - 0.2) * (at[0] - 0.2) + 0.1 * at[0] * at[1] + 0.05 * at[1] * at[1];
    const long group = i % 2;
    points.push_back(
        {at, group, 2.5 + static_cast<double>(group) + rise + 0.005 * stream.normal()});
  }
  points.push_back({{0, 0, 0}, 0, 40});  // as good as diverged
  const Quadratic fit(points);
  const std::vector<AxisEffect> effects = fit.effects({0.2, -0.2, 0.5});
  // By hand: the rise of the function above, half of the box away.
  CHECK_THAT(effects[0].effect, WithinAbs(0.4 + 0.1 * 0.2, 0.02));
  CHECK_THAT(effects[1].effect, WithinAbs(0.1 * 0.2 + 0.05 * (0.64 - 0.04), 0.01));
  CHECK(std::abs(effects[2].effect) < 2.5 * effects[2].error);
  CHECK(effects[0].low > -0.1);
  CHECK(effects[0].high < 0.5);
  CHECK(effects[2].high > 0.9);
  CHECK(effects[0].error < 0.01);
}

// Seeds 1 to 200, by eights: 76 to 80, and 80 of the first; by σ² (XᵀX + λ)⁻¹ 66 to 79, and 74 of the first.
TEST_CASE("Effects hold within two errors where runs are fewer than terms and have no noise",
          "[tune]") {
  int held = 0;
  const int seeds = test::sanitized ? 2 : 8;
  for (int seed = 1; seed <= seeds; ++seed) {
    numeric::RandomStream stream(static_cast<std::uint64_t>(seed), "bowl");
    std::vector<double> bend(10), lowest(10);
    for (double& b : bend) b = 0.3 * stream.uniform();
    for (double& x : lowest) x = stream.uniform() - 0.5;
    const auto rise = [&](std::size_t j, double x) { return bend[j] * std::pow(x - lowest[j], 2); };
    std::vector<Point> points;
    for (std::uint32_t i = 0; i < 60; ++i) {  // for the 65 terms of ten axes
      Point point{sobol_point(i, 10, static_cast<std::uint64_t>(seed))};
      for (double& x : point.at) x = 2 * x - 1;
      for (std::size_t j = 0; j < 10; ++j) point.loss += rise(j, point.at[j]);
      points.push_back(point);
    }
    const std::vector<AxisEffect> effects = Quadratic(points).effects(std::vector<double>(10, 0));
    for (std::size_t j = 0; j < 10; ++j) {
      const double error = effects[j].effect - (rise(j, 1) - rise(j, 0));
      held += std::abs(error) <= 2 * effects[j].error ? 1 : 0;
    }
  }
  CHECK(held >= 10 * seeds - 2);
}

TEST_CASE("No place is as good beyond the last run that had a loss, if others are there",
          "[tune]") {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) {
    const double x = -1 + 0.05 * i;  // to -0.05
    points.push_back({{x}, 0, 2.5 - 0.01 * x});
  }
  CHECK(Quadratic(points).effects({-0.1})[0].high == 1);
  CHECK_THAT(Quadratic(points, {{0.5}}).effects({-0.1})[0].high, WithinAbs(-0.05, 1e-9));
  points.push_back({{0.2}, 0, 900});
  CHECK_THAT(Quadratic(points).effects({-0.1})[0].high, WithinAbs(-0.05, 1e-9));
}

TEST_CASE("The best place of short runs may be another", "[tune]") {
  std::vector<Point> points;
  for (int i = 0; i < 40; ++i) {
    const double x = -1 + 0.05 * i;
    const bool is_short = i % 4 != 0;
    const double v = x - (is_short ? 0.3 : 0);
    points.push_back({{x}, is_short ? 1 : 2, (is_short ? 2.9 : 2.5) + 0.5 * v * v, is_short});
  }
  const AxisEffect found = Quadratic(points).effects({0})[0];
  CHECK_THAT(found.effect, WithinAbs(0.5, 1e-3));  // not 0.5 (1 - 2 0.3 3/4) and between
  for (Point& point : points) point.is_short = false;
  CHECK(std::abs(Quadratic(points).effects({0})[0].effect - 0.5) > 0.1);
}

TEST_CASE("Effects of two places are not known, however often they ran", "[tune]") {
  std::vector<Point> points;
  for (int i = 0; i < 12; ++i) points.push_back({{i % 2 - 0.5}, 0, 2 + 0.01 * i});
  CHECK_FALSE(Quadratic(points).effects({0})[0].is_known());
}

TEST_CASE("Effects of two runs are not known", "[tune]") {
  const std::vector<AxisEffect> effects = Quadratic({{{0}, 0, 1}, {{1}, 0, 2}}).effects({0});
  CHECK_FALSE(effects[0].is_known());
}

}  // namespace
