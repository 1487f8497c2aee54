// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Losses that are finite though their runs diverged.

#include "scalewise/check/rate_curve.hpp"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/numeric/random.hpp"
#include "support/catch.hpp"

namespace rate_curves_blown_up {

using namespace scalewise;
using namespace scalewise::check;
using Catch::Matchers::ContainsSubstring;

/// Of one seed at whole octaves from -2 on.
RateCurve curve_of(const std::vector<double>& losses) {
  std::vector<RateRun> runs;
  for (std::size_t i = 0; i < losses.size(); ++i)
    runs.push_back({64, static_cast<double>(i) - 2, 1, losses[i]});
  return rate_curves(runs)[0];
}

/// Three widths with one optimum, five rates and three seeds; the two rates above the optimum of the largest end at
/// about `lost`, or where it is 0 as they should.
Transfer sweep(std::uint64_t number, double lost) {
  numeric::RandomStream stream(number, "blown up");
  std::vector<RateRun> runs;
  for (const long width : {64L, 128L, 256L}) {
    for (long seed = 1; seed <= 3; ++seed) {
      for (int o = -2; o <= 2; ++o) {
        const double loss = 2.6 + 0.03 * o * o + 0.004 * o * o * o + 0.005 * stream.normal();
        const double blown = lost * (1 + 0.1 * stream.uniform());
        runs.push_back({width, static_cast<double>(o), seed,
                        lost > 0 && width == 256 && o > 0 ? blown : loss});
      }
    }
  }
  return analyse_transfer(runs);
}

TEST_CASE("A loss far above those of lower rates is that of a diverged run, with all above it") {
  const RateCurve lost = curve_of({2.72, 2.63, 2.6, 5.1, 4.9});
  CHECK(lost.blown_up == 1);
  CHECK(lost.diverged(1));
  CHECK(lost.diverged(2));
  CHECK_FALSE(lost.diverged(0));
  // A parabola whose vertex is a rate, steep and flat; a far low end; too few rates below; losses that fall to zero.
  for (const std::vector<double>& losses : {std::vector<double>{2.63, 2.6, 2.63, 2.72, 2.87},
                                            {12, 3, 0.01, 3, 12},
                                            {6.0, 3.4, 2.7, 2.6, 3.5},
                                            {2.6, 2.63, 9.0},
                                            {1, 0.1, 0.01, 0.001, 0.0001}}) {
    CHECK(std::isnan(curve_of(losses).blown_up));
  }
}

TEST_CASE("Finite losses of diverged runs do not make a sweep fail") {
  for (const double lost : {4.5, 5.0, 5.5, 6.0, 7.0}) {
    for (std::uint64_t number = 0; number < 20; ++number) {
      INFO(lost << " " << number);
      const TransferVerdict verdict = judge(sweep(number, lost), "width");
      CHECK(verdict.verdict != Verdict::fail);
      REQUIRE(!verdict.not_judged.empty());
      CHECK_THAT(verdict.not_judged.front(),
                 ContainsSubstring("at width 256 losses from rate 2 on"));
    }
  }
  for (std::uint64_t number = 0; number < 20; ++number) {
    const TransferVerdict verdict = judge(sweep(number, 0), "width");
    CHECK(verdict.verdict == Verdict::pass);
    CHECK(verdict.not_judged.empty());
  }
}

}  // namespace rate_curves_blown_up
