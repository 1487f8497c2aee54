// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Sweeps of learning rates of which all is known.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "scalewise/check/rate_curve.hpp"
#include "scalewise/check/transfer.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::test {

/// A cubic of the rate's logarithm; small enough that no regret exceeds 2 % of its 2 nats.
inline double bowl(double octave, double optimum, double third = 0) {
  const double v = octave - optimum;
  return 2 + 0.05 * v * v + third * v * v * v;
}

inline double octaves_above(long size, double base) {
  return std::log2(static_cast<double>(size) / base);
}

/// A sweep of which all is known: what it is to find, and how much its seeds and batches scatter.
struct Truth {
  double drift = 0;
  double scatter = 0.1;  // of a seed's optimum
  double noise = 0.01;   // of a loss
  double third = 0.005;
  double narrowing = 0;  // power of the size with which scatter falls
  double optimum(long size) const { return 0.2 + drift * octaves_above(size, 64); }
  double regret(long from, long to) const { return bowl(optimum(from), optimum(to), third) - 2; }
};

inline constexpr double rates[] = {-2, -1, -0.5, 0, 0.5, 1, 2};

/// Sweep number `draw`: 16 seeds at width 32, 4 at 64 and at 128, each at seven rates around its
/// optimum.
inline std::vector<check::RateRun> drawn(const Truth& truth, std::uint64_t draw) {
  numeric::RandomStream stream(draw, "sweep");
  std::vector<check::RateRun> runs;
  for (const long size : {32L, 64L, 128L}) {
    const double centre = std::round(truth.optimum(size));
    for (long seed = 1; seed <= (size == 32 ? 16 : 4); ++seed) {
      const double offset = 0.05 * stream.normal();
      const double scatter = truth.scatter * std::exp2(-truth.narrowing * octaves_above(size, 64));
      const double optimum = truth.optimum(size) + scatter * stream.normal();
      for (const double rate : rates) {
        const double loss = offset + bowl(centre + rate, optimum, truth.third);
        runs.push_back({size, centre + rate, seed, loss + truth.noise * stream.normal()});
      }
    }
  }
  return runs;
}

inline bool holds(const check::IntervalEstimate& e, double truth) {
  return e.low <= truth && truth <= e.high;
}

}  // namespace scalewise::test
