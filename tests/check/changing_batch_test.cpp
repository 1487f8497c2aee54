// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#include "scalewise/check/changing_batch.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/made_up_records.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("Another batch at each step is seen by the size of changes that stays") {
  const std::vector<Member> family = family_of("maximal-update");
  const auto report = [&](double growth) {  // of the second change over the first
    Records records = follow(family);
    for (const Signal signal : {Signal::value, Signal::change}) {
      for (const auto& [run, moments] : *records.find({signal, "embedding"}, 1)) {
        const double factor = signal == Signal::change ? growth : 1;
        const double rms = std::sqrt(moments.sum_squares) * factor;
        records.add({signal, "embedding"}, 2, run, {rms, rms * rms, 1});
      }
    }
    return coordinate_check(records, family);
  };
  const Report other = report(1);
  CHECK(other.verdict == Verdict::inconclusive);
  REQUIRE(other.missing.size() == 1);
  CHECK(other.missing.front() ==
        "the same batch at all steps: embedding differs from step to step as other batches do");
  CHECK(report(std::sqrt(2.0)).missing.empty());  // random steps
  CHECK(report(2).missing.empty());               // steps in one direction
  CHECK(report(0.5).missing.empty());             // a step back
}
