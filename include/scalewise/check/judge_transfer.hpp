// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "scalewise/check/transfer.hpp"
#include "scalewise/check/verdict.hpp"

namespace scalewise::check {

/// A verdict and the sentence that says why.
struct TransferVerdict {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;
};

inline constexpr double drift_tolerance = 0.15;   // octaves per octave
inline constexpr double regret_tolerance = 0.02;  // of the re-tuned loss

namespace detail {

inline std::string transfer_number(double value) {
  return std::fabs(value) < 1e9 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

inline std::string drift_text(const IntervalEstimate& drift) {
  return transfer_number(drift.value) + " octaves per octave (95 % interval " +
         transfer_number(drift.low) + " to " + transfer_number(drift.high) + ")";
}

/// Pass: at most 2 % of the re-tuned loss, or two standard errors if they are more. Fail: two
/// standard errors below it are still more than 2 %.
inline Verdict judge_regret(const SizeTransfer& size) {
  const double allowed = regret_tolerance * size.loss;
  const double noise = 2 * size.regret_error;
  if (size.regret <= std::fmax(noise, allowed)) return Verdict::pass;
  return size.regret - noise > allowed ? Verdict::fail : Verdict::inconclusive;
}

inline std::string regret_text(const SizeTransfer& size, const std::string& axis) {
  const std::string where =
      "at " + axis + " " + std::to_string(size.size) + " the transferred rate ";
  if (!std::isfinite(size.regret)) return where + "diverges";
  return where + "costs " + transfer_number(100 * size.regret / size.loss) +
         " % of the re-tuned loss, ± " + transfer_number(100 * size.regret_error / size.loss) +
         " %";
}

}  // namespace detail

/// Whether the rate transfers along an axis ("width", "depth", "horizon").
/// Equation: pass: every optimum is interior, the drift's interval lies within expected ± 0.15, and
///           every regret is at most max(2 standard errors, 2 %). fail: the drift's interval lies
///           outside, or a regret exceeds 2 % by two standard errors or is a divergence.
///           Else inconclusive, as are fewer than two sizes or seeds.
/// Requires: losses are positive.
inline TransferVerdict judge(const Transfer& transfer, const std::string& axis) {
  if (transfer.sizes.size() < 2 || transfer.seeds < 2) {
    return {Verdict::inconclusive, "a drift with an interval needs two sizes and two seeds"};
  }
  for (const SizeTransfer& size : transfer.sizes) {
    const std::string where = "at " + axis + " " + std::to_string(size.size);
    if (!size.trained)
      return {Verdict::inconclusive, where + " every rate diverged with some seed"};
    if (!size.interior) {
      return {Verdict::inconclusive,
              where + " the lowest loss lies at the edge of the rates tried"};
    }
  }
  const IntervalEstimate& drift = transfer.drift;
  const double least = transfer.expected - drift_tolerance;
  const double most = transfer.expected + drift_tolerance;
  const std::string range = detail::transfer_number(least) + " to " + detail::transfer_number(most);
  const std::string drifts = "the optimal rate drifts by " + detail::drift_text(drift);
  if (drift.high < least || drift.low > most) {
    return {Verdict::fail, drifts + ", outside of " + range};
  }
  const SizeTransfer* doubtful = nullptr;
  for (const SizeTransfer& size : transfer.sizes) {
    const Verdict verdict = detail::judge_regret(size);
    if (verdict == Verdict::fail) return {verdict, detail::regret_text(size, axis)};
    if (verdict == Verdict::inconclusive && doubtful == nullptr) doubtful = &size;
  }
  if (drift.low < least || drift.high > most) {
    return {Verdict::inconclusive,
            drifts + ", partly outside of " + range + ": more seeds or sizes would tell"};
  }
  if (doubtful != nullptr) {
    return {Verdict::inconclusive, detail::regret_text(*doubtful, axis) +
                                       ": more seeds would tell whether that is above 2 %"};
  }
  return {Verdict::pass, drifts + ", within " + range + ", and no regret exceeds 2 % or its noise"};
}

}  // namespace scalewise::check
