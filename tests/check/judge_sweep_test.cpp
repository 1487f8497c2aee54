// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/judge_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/check/sweep_table.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/synthetic_sweep.hpp"

namespace {

using namespace scalewise::check;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

const double infinite_loss = std::numeric_limits<double>::infinity();

/// Rows of a bowl whose optimum at size 256 is at 2^-9, from 2^-13 to 2^-6.
std::vector<SweepRow> bowl_rows(const std::vector<long>& sizes, long seeds, double drift) {
  std::vector<SweepRow> rows;
  for (const long size : sizes) {
    for (int o = -13; o <= -6; ++o) {
      for (long seed = 1; seed <= seeds; ++seed) {
        const double loss = bowl(o, -9 + drift * octaves_above(size, 256), 0.004);
        rows.push_back({size, std::ldexp(1, o), seed, loss + 0.03 * static_cast<double>(seed)});
      }
    }
  }
  return rows;
}

SweepTable nanogpt_sweep(const std::string& arm) {
  return read_sweep_table(std::string(SCALEWISE_TEST_DIR) + "/check/data/nanogpt_sweep.jsonl",
                          {.where = {"arm=" + arm}});
}

}  // namespace

TEST_CASE("A cubic in the rate's logarithm is found, whatever runs are missing") {
  std::vector<SweepRow> rows = bowl_rows({256, 512, 1024, 2048}, 3, -0.75);
  std::vector<SweepRow> some;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i % 7 != 3 && i % 11 != 5) some.push_back(rows[i]);  // no seed has all rates
  }
  some.push_back({512, std::ldexp(1, -8) * 1.3, 3, bowl(-8 + std::log2(1.3), -9.75, 0.004) + 0.09});
  const JudgedSweep judged = judge_sweep(some, "width");
  CHECK_THAT(judged.transfer.drift.value, WithinAbs(-0.75, 1e-8));
  CHECK_THAT(judged.transfer.sizes[0].optimum.value, WithinAbs(-9, 1e-8));
  CHECK_THAT(judged.transfer.sizes[3].regret.value, WithinAbs(bowl(-9, -11.25, 0.004) - 2, 1e-8));
  CHECK(judged.judged.verdict == Verdict::fail);
  CHECK(judged.judged.not_judged.empty());
}

TEST_CASE(
    "An optimum at the edge is found where the shape of others says it, and left out further on") {
  // At 2048 it lies at -12.3: between the rates, then 0.3 octaves and then 1.3 below the lowest.
  const std::vector<long> sizes{256, 512, 2048};
  std::vector<SweepRow> rows = bowl_rows(sizes, 2, -1.1);
  const auto without = [&](double octave) {
    std::vector<SweepRow> some;
    for (const SweepRow& row : rows) {
      if (row.size < 2048 || std::log2(row.rate) > octave) some.push_back(row);
    }
    return judge_sweep(some, "width");
  };
  const JudgedSweep whole = without(-14);
  const JudgedSweep edge = without(-12.5);
  CHECK_THAT(edge.transfer.drift.value,
             WithinAbs(-1.1, 0.005));  // three rates hardly tell a third order
  CHECK(edge.transfer.sizes[2].interior);
  CHECK(edge.judged.verdict == Verdict::fail);
  const JudgedSweep beyond = without(-11.5);
  CHECK_FALSE(beyond.transfer.sizes[2].interior);
  CHECK(std::isnan(beyond.transfer.sizes[2].regret.value));
  CHECK_THAT(beyond.transfer.drift.value, WithinAbs(-1.1, 1e-8));
  REQUIRE(beyond.judged.not_judged.size() == 1);
  CHECK_THAT(beyond.judged.not_judged[0],
             ContainsSubstring("at width 2048 the lowest loss lies at the edge of the rates tried: "
                               "try rates below 0.000488"));
  // A size that is left out has no say: not even with another curvature, where a fit of it converges.
  rows = bowl_rows(sizes, 2, -0.95);
  for (SweepRow& row : rows) row.loss = row.size == 2048 ? 2 * row.loss : row.loss;
  const JudgedSweep other = without(-11.5);
  CHECK_FALSE(other.transfer.sizes[2].interior);
  CHECK_THAT(other.transfer.drift.value, WithinAbs(-0.95, 1e-8));
  // Rates of one side tell an optimum by the curvature, which is that of other sizes only nearly.
  CHECK(edge.transfer.sizes[2].optimum.high - edge.transfer.sizes[2].optimum.low >
        whole.transfer.sizes[2].optimum.high - whole.transfer.sizes[2].optimum.low);
}

TEST_CASE("Large losses of runs that diverged are no reason to fail") {
  std::vector<SweepRow> rows = bowl_rows({256, 512, 1024}, 3, 0);
  for (SweepRow& row : rows) row.loss = row.rate > std::ldexp(1, -9) ? 1000 : row.loss;
  TransferVerdict verdict = judge_sweep(rows, "width").judged;
  CHECK(verdict.verdict == Verdict::inconclusive);
  CHECK_THAT(verdict.reason, ContainsSubstring("the rate above the lowest loss diverges"));
  CHECK_THAT(verdict.not_judged.at(0),
             ContainsSubstring("at width 256 losses from rate 0.00391 on"));
  // Two rates below do not say what is far.
  std::erase_if(rows, [](const SweepRow& row) { return row.rate < std::ldexp(1, -10); });
  verdict = judge_sweep(rows, "width").judged;
  CHECK(verdict.verdict == Verdict::inconclusive);
  CHECK_THAT(verdict.reason,
             ContainsSubstring("are the highest those of runs that diverged (nan)?"));
}

TEST_CASE("With a size that was not judged a sweep fails, but does not pass") {
  std::vector<SweepRow> rows = bowl_rows({256, 512}, 2, 0);
  CHECK(judge_sweep(rows).judged.verdict == Verdict::pass);
  rows.push_back({1024, std::ldexp(1, -9), 1, 2});
  rows.push_back({1024, std::ldexp(1, -8), 1, 2.1});
  const TransferVerdict verdict = judge_sweep(rows).judged;
  CHECK(verdict.verdict == Verdict::inconclusive);
  CHECK_THAT(verdict.reason, ContainsSubstring("at size 1024 no seed has three rates"));
  std::vector<SweepRow> drifting = bowl_rows({256, 512}, 2, -1);
  drifting.push_back({1024, std::ldexp(1, -9), 1, 2});
  CHECK(judge_sweep(drifting).judged.verdict == Verdict::fail);
}

TEST_CASE("One seed fails for a clear drift, never passes, and says what it cannot say") {
  const JudgedSweep drifting = judge_sweep(bowl_rows({256, 512, 1024}, 1, -1), "width");
  CHECK(drifting.judged.verdict == Verdict::fail);
  REQUIRE(drifting.judged.not_judged.size() == 1);
  CHECK_THAT(drifting.judged.not_judged[0], ContainsSubstring("one seed at width 256, 512, 1024"));
  const TransferVerdict level = judge_sweep(bowl_rows({256, 512, 1024}, 1, 0)).judged;
  CHECK(level.verdict == Verdict::inconclusive);
  CHECK_THAT(level.reason, ContainsSubstring("one seed cannot say"));
  // Without noise the interval is that of the assumed scatter: t(0.975; 6) 0.08 √(1/2).
  CHECK_THAT(drifting.transfer.drift.high - drifting.transfer.drift.value,
             WithinRel(2.446912 * 0.08 * std::sqrt(0.5), 1e-3));
}

TEST_CASE("Seeds of one size tell the scatter of another") {
  // Two seeds at 512 and 1024 that lie 0.3 octaves apart: 2 degrees of freedom with variance 0.045, and 6
  // with 0.0064, so 0.01605 for each.
  std::vector<SweepRow> rows = bowl_rows({256}, 1, 0);
  for (const long size : {512L, 1024L}) {
    for (int o = -13; o <= -6; ++o) {
      for (const long seed : {1L, 2L}) {
        const double optimum = -9 + (seed == 1 ? 0.15 : -0.15);
        rows.push_back({size, std::ldexp(1, o), seed, bowl(o, optimum, 0)});
      }
    }
  }
  for (SweepRow& row : rows) {
    if (row.size == 256) row.loss = bowl(std::log2(row.rate), -9, 0);
  }
  const Transfer found = judge_sweep(rows).transfer;
  const double half = 2.306004 * std::sqrt(0.01605);
  CHECK_THAT(found.sizes[0].optimum.high - found.sizes[0].optimum.value, WithinRel(half, 2e-2));
  CHECK_THAT(found.sizes[1].optimum.high - found.sizes[1].optimum.value,
             WithinRel(half / std::sqrt(2.0), 2e-2));
}

TEST_CASE("A diverged run is worse than any other, wherever it stands") {
  std::vector<SweepRow> rows = bowl_rows({256, 512}, 3, 0);
  for (SweepRow& row : rows) {
    if (row.size == 512 && row.seed == 2 && row.rate >= std::ldexp(1, -9)) row.loss = infinite_loss;
  }
  const TransferVerdict verdict = judge_sweep(rows, "width").judged;
  CHECK(verdict.verdict == Verdict::fail);
  CHECK_THAT(verdict.reason, ContainsSubstring("the transferred rate diverges"));
}

TEST_CASE("Rows that are not runs are refused") {
  const auto refused = [](const SweepRow& row) {
    return error_message([&] { judge_sweep({row}); });
  };
  CHECK_THAT(refused({8, 0, 1, 2}), ContainsSubstring("rate = 0"));
  CHECK_THAT(refused({8, infinite_loss, 1, 2}), ContainsSubstring("rate = inf"));
  CHECK_THAT(refused({8, 1, 1, -2}), ContainsSubstring("loss = -2"));
  CHECK_THAT(refused({0, 1, 1, 2}), ContainsSubstring("size = 0"));
}

TEST_CASE("Losses that overflow leave no fit") {
  std::vector<SweepRow> rows;
  for (const long size : {8L, 16L, 32L}) {
    for (const double o : {-3.0, -2.0, -1.0, 0.0, 1.0}) {
      const bool huge = size == 32 && o == -2;
      rows.push_back({size, std::exp2(o), 1, huge ? 1e308 : 2 + o * o});
    }
  }
  const JudgedSweep judged = judge_sweep(rows, "width");
  CHECK(judged.judged.verdict == Verdict::inconclusive);
  CHECK(std::isnan(judged.transfer.drift.value));
}

TEST_CASE("nanoGPT on a GPU: one rate fails, maximal update passes over the width") {
  const JudgedSweep one = judge_sweep(nanogpt_sweep("sp").rows, "width");
  CHECK(one.judged.verdict == Verdict::fail);
  CHECK((-1.6 < one.transfer.drift.low && one.transfer.drift.high < -0.9));
  const JudgedSweep mup = judge_sweep(nanogpt_sweep("mup").rows, "width");
  CHECK(mup.judged.verdict == Verdict::pass);
  CHECK(nanogpt_sweep("complete-p").columns.size == "depth");
  for (const std::string arm : {"complete-p", "mup-depth"}) {
    const JudgedSweep depth = judge_sweep(nanogpt_sweep(arm).rows, "depth");
    CHECK(depth.judged.verdict == Verdict::inconclusive);
    const std::vector<std::string>& left_out = depth.judged.not_judged;
    CHECK(std::any_of(left_out.begin(), left_out.end(), [](const std::string& line) {
      return line.starts_with("at depth 32 no seed has three");
    }));
  }
  const SweepComparison both = compare(mup.transfer, one.transfer);
  CHECK(both.drift.high < 0);
  CHECK(both.size == 2048);
  CHECK(both.tuned.value > 0);  // maximal update ends above, if each is tuned at its own width
  CHECK(both.carried.value < 0);
}

TEST_CASE("Losses are compared by pairs of seeds") {
  // b lies 0.1, 0.2 and 0.3 above a: Student's interval of three numbers, and what little error shapes have
  // without noise.
  const auto a = judge_sweep(bowl_rows({256, 512}, 3, 0)).transfer;
  std::vector<SweepRow> rows = bowl_rows({256, 512}, 3, -1);
  for (SweepRow& row : rows) row.loss += 0.1 * static_cast<double>(row.seed);
  const auto b = judge_sweep(rows).transfer;
  const SweepComparison c = compare(a, b);
  CHECK(c.pairs == 3);
  CHECK_THAT(c.tuned.value, WithinAbs(-0.2, 1e-8));
  const double seeds = 4.302652730 * 0.1 / std::sqrt(3.0);
  const double shape = std::hypot(a.sizes[1].loss_half, b.sizes[1].loss_half);
  CHECK_THAT(c.tuned.high, WithinAbs(-0.2 + std::hypot(seeds, shape), 1e-6));
  CHECK_THAT(c.drift.value, WithinAbs(-1, 1e-8));
  CHECK_THAT(c.carried.value, WithinAbs(-0.2 - (bowl(-9, -10, 0.004) - 2), 1e-8));
}
