// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/transfer.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// A finished run of any training code.
struct SweepRow {
  long size = 0;    // width, depth or what else grows
  double rate = 0;  // or what else is tuned
  long seed = 1;
  double loss = 0;  // not finite: diverged
};

/// A sweep and what it means. Octaves are log2 of the rate.
struct JudgedSweep {
  std::vector<RateRun> runs = {};
  Transfer transfer = {};
  TransferVerdict judged = {};
};

/// Whether the rate, or what else was `tuned`, of the smallest size is that of larger ones, from runs of
/// any training code, as analyse_transfer() and judge() say.
/// Shapes:   rows in any order; sizes may have other rates and seeds than others, and runs may be missing;
///           `empty`: sizes that were to be compared and have no run
/// Units:    rates absolute; losses in any unit, above zero
/// Accuracy: measured on simulated tables with gaps, edges and divergence in
///           docs/checks/learning_rate_transfer.md. With one or two seeds at a size, their scatter is taken
///           together with that of all sizes and of earlier sweeps.
/// Throws:   InvalidInput for a size or a rate that is not positive, a finite loss that is not, or two rows
///           of one run.
inline JudgedSweep judge_sweep(const std::vector<SweepRow>& rows, const std::string& axis = "size",
                               const std::string& tuned = "rate", double expected = 0,
                               const std::vector<long>& empty = {}) {
  JudgedSweep sweep;
  for (const SweepRow& row : rows) {
    if (!(row.rate > 0) || !std::isfinite(row.rate)) {
      throw InvalidInput("rate", std::to_string(row.rate), "a number above 0");
    }
    if (std::isfinite(row.loss) && !(row.loss > 0)) {
      throw InvalidInput("loss", std::to_string(row.loss), "a number above 0");
    }
    sweep.runs.push_back({row.size, std::log2(row.rate), row.seed, row.loss});
  }
  sweep.transfer = analyse_transfer(sweep.runs, expected);
  std::vector<SizeTransfer>& sizes = sweep.transfer.sizes;
  for (const long size : empty) {
    sizes.push_back({.size = size,
                     .empty = true,
                     .optimum = {std::nan(""), std::nan(""), std::nan("")},
                     .loss = std::nan("")});
  }
  std::sort(sizes.begin(), sizes.end(),
            [](const SizeTransfer& a, const SizeTransfer& b) { return a.size < b.size; });
  sweep.judged = judge(sweep.transfer, axis, 1, tuned);
  return sweep;
}

/// One sweep minus another. Intervals that include 0 leave open which is better; they are infinite where
/// a sweep has one seed at every size.
/// Units:    drift in octaves per octave; losses as the runs'
struct SweepComparison {
  IntervalEstimate drift = {};    // distances of the drifts from what is expected
  long size = 0;                  // the largest that both have an optimum at; 0: none
  IntervalEstimate tuned = {};    // of the losses there, each at its own optimum
  IntervalEstimate carried = {};  // each with the rate of its smallest size
  std::size_t pairs = 0;          // seeds that both have there
};

namespace detail {

/// The distance of the drift from what is expected, with an interval: where |x| can be for x in the drift's.
inline IntervalEstimate drift_distance(const Transfer& transfer) {
  const double low = transfer.drift.low - transfer.expected;
  const double high = transfer.drift.high - transfer.expected;
  const double least = low <= 0 && high >= 0 ? 0 : std::fmin(std::fabs(low), std::fabs(high));
  return {std::fabs(transfer.drift.value - transfer.expected), least,
          std::fmax(std::fabs(low), std::fabs(high))};
}

/// The difference of two estimates, or, with `sign` 1, their sum, by MOVER.
inline IntervalEstimate combined(const IntervalEstimate& a, const IntervalEstimate& b,
                                 double sign) {
  const double value = a.value + sign * b.value;
  const double below = sign < 0 ? b.high - b.value : b.value - b.low;
  const double above = sign < 0 ? b.value - b.low : b.high - b.value;
  return {value, value - std::hypot(a.value - a.low, below),
          value + std::hypot(a.high - a.value, above)};
}

/// A mean with its interval, from that of the shape and Student's of the numbers, whose variance is given.
inline IntervalEstimate mean_with(const std::vector<double>& all, double shape, double variance,
                                  std::size_t degrees) {
  const auto n = static_cast<double>(all.size());
  double mean = 0;
  for (const double x : all) mean += x / n;
  const double half =
      degrees == 0 ? std::numeric_limits<double>::infinity()
                   : std::hypot(shape, numeric::t_quantile(degrees) * std::sqrt(variance / n));
  return {mean, mean - half, mean + half};
}

/// Σ (x - mean)²
inline double spread(const std::vector<double>& x) {
  double mean = 0;
  for (const double at : x) mean += at / static_cast<double>(x.size());
  double sum = 0;
  for (const double at : x) sum += (at - mean) * (at - mean);
  return sum;
}

/// The losses of the seeds of a size.
inline std::vector<double> losses_of(const SizeTransfer& size) {
  std::vector<double> all;
  for (const auto& [seed, loss] : size.seed_losses) all.push_back(loss);
  return all;
}

/// The loss at one size, with the scatter of the seeds of all sizes: one may have one only.
inline IntervalEstimate loss_at(const Transfer& transfer, const SizeTransfer& size) {
  double squares = 0;
  std::size_t degrees = 0;
  for (const SizeTransfer& one : transfer.sizes) {
    if (one.seed_losses.size() < 2) continue;
    squares += spread(losses_of(one));
    degrees += one.seed_losses.size() - 1;
  }
  return mean_with(losses_of(size), size.loss_half, squares / static_cast<double>(degrees),
                   degrees);
}

/// The differences of the losses of seeds that both have.
inline std::vector<double> paired(const SizeTransfer& a, const SizeTransfer& b) {
  std::vector<double> differences;
  for (const auto& [seed, loss] : a.seed_losses) {
    const auto other = b.seed_losses.find(seed);
    if (other != b.seed_losses.end()) differences.push_back(loss - other->second);
  }
  return differences;
}

}  // namespace detail

/// Which of two sweeps transfers better, and which is better at the largest size that both have.
/// Equation: distances |drift - expected| and losses, of a minus b; losses at each own optimum, by pairs of
///           seeds, and with the regret of each. Intervals are combined by MOVER.
/// Source:   Zou and Donner 2008, doi:10.1002/sim.3095
/// Accuracy: where both have fewer than two seeds in common, losses scatter as those of all sizes of a sweep;
///           with one seed at every size the interval is infinite.
inline SweepComparison compare(const Transfer& a, const Transfer& b) {
  SweepComparison result;
  result.drift = detail::combined(detail::drift_distance(a), detail::drift_distance(b), -1);
  for (const SizeTransfer& one : a.sizes) {
    for (const SizeTransfer& other : b.sizes) {
      if (one.size != other.size || !one.interior || !other.interior) continue;
      result.size = one.size;
      const std::vector<double> pairs = detail::paired(one, other);
      result.pairs = pairs.size();
      result.tuned = detail::combined(detail::loss_at(a, one), detail::loss_at(b, other), -1);
      if (pairs.size() > 1) {
        const std::size_t degrees = pairs.size() - 1;
        result.tuned =
            detail::mean_with(pairs, std::hypot(one.loss_half, other.loss_half),
                              detail::spread(pairs) / static_cast<double>(degrees), degrees);
      }
      result.carried =
          detail::combined(detail::combined(result.tuned, one.regret, 1), other.regret, -1);
    }
  }
  return result;
}

}  // namespace scalewise::check
