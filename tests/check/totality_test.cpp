// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The arithmetic of the checks given numbers out of range.

#include <cmath>
#include <vector>

#include "scalewise/check/alignment.hpp"
#include "scalewise/check/estimate.hpp"
#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/profile.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/check/tangent_kernel.hpp"
#include "scalewise/check/transfer.hpp"
#include "scalewise/plot/axis_tics.hpp"
#include "support/hostile.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

}  // namespace

TEST_CASE("Estimates, exponents and growth are total", "[total]") {
  for (const double x : hostile) {
    for (const double y : hostile) {
      const std::vector<double> pair{x, y};
      call("estimate", [&] { check::estimate(pair); });
      call("growth_per_layer", [&] { check::growth_per_layer(pair); });
      call("kernel_distance", [&] { check::kernel_distance(pair, std::vector<double>{y, x}); });
      call("trace", [&] { check::trace(pair, 0); });
      call("alignment_exponent", [&] { check::alignment_exponent(x, y, x, y); });
      call("loss_weighted_mean", [&] { check::loss_weighted_mean(pair, pair); });
      for (const int base : {2, 10}) call("log_axis", [&] { plot::log_axis(x, y, base); });
    }
  }
  CHECK(check::estimate({}).count == 0);
  CHECK(std::isnan(check::growth_per_layer(std::vector<double>{1, -1})));
  CHECK_THROWS_AS(plot::log_axis(0, 1, 10), InvalidInput);
  CHECK_THROWS_AS(plot::log_axis(2, 1, 10), InvalidInput);
  CHECK_FALSE(plot::log_axis(limit::denorm_min(), limit::denorm_min(), 2).tics.empty());
  CHECK_FALSE(plot::log_axis(limit::max(), limit::max(), 10).tics.empty());
}
