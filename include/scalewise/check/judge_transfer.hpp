// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/check/transfer.hpp"
#include "scalewise/check/verdict.hpp"

namespace scalewise::check {

/// Seeds that a size lacks.
struct MoreSeeds {
  long size = 0;
  long seeds = 0;
};

/// A verdict and the sentence that says why.
struct TransferVerdict {
  Verdict verdict = Verdict::inconclusive;
  std::string reason;
  double factor = 1;  // with so many times the seeds, the present estimate would decide
  std::vector<MoreSeeds> more = {};          // the same in seeds
  std::vector<std::string> not_judged = {};  // and why: sentences without a full stop
};

/// In octaves per octave. Over a tenfold size the optimum moves by 0.3 log2(10) = 1 octave, a step of the
/// grid of factors of two on which rates are usually tuned, which costs nearly what regret_tolerance allows.
inline constexpr double drift_tolerance = 0.3;

/// Of the re-tuned loss; what a rate off by 1.1 to 1.3 octaves costs in the reference transformer.
/// Measured: curvature of 0.031 to 0.039 nats per octave² at 2.4 nats, in
///           docs/checks/learning_rate_transfer.md.
inline constexpr double regret_tolerance = 0.02;

/// How often a sweep passes, and how often it fails, where the drift is at its tolerance: the part of a
/// 95 % interval's errors on one side.
inline constexpr double transfer_error_rate = 0.025;

namespace detail {

inline std::string transfer_number(double value) {
  if (std::fabs(value) < 0.005) value = 0;  // not "-0.00"
  return std::fabs(value) < 1e9 ? fmt::format("{:.2f}", value) : fmt::format("{:.3g}", value);
}

inline std::string interval_text(const IntervalEstimate& e, double unit, const std::string& name) {
  return transfer_number(e.value / unit) + name + " (95 % interval " +
         transfer_number(e.low / unit) + " to " + transfer_number(e.high / unit) + ")";
}

/// Names of the axis and of the tuned hyperparameter in messages, and its value at octave 0.
struct SweepWords {
  std::string axis;
  double centre = 1;
  std::string tuned;

  std::string at(const SizeTransfer& size) const {
    return "at " + axis + " " + std::to_string(size.size) + " ";
  }
};

/// Where an interval lies against a range: pass inside, fail outside.
inline Verdict place(const IntervalEstimate& e, double least, double most) {
  if (e.low >= least && e.high <= most) return Verdict::pass;
  return e.high < least || e.low > most ? Verdict::fail : Verdict::inconclusive;
}

/// How many times the seeds an interval needs to come to one side of a range's end; infinite where no number would do.
inline double seeds_factor(const IntervalEstimate& e, double least, double most) {
  const double gap = std::fmin(std::fabs(e.value - least), std::fabs(most - e.value));
  const double half = std::fmax(e.high - e.value, e.value - e.low);
  if (gap <= e.fixed) return HUGE_VAL;
  return std::fmax((half * half - e.fixed * e.fixed) / (gap * gap - e.fixed * e.fixed), 1);
}

/// Beyond this the estimate is too near the tolerance for a forecast to mean much.
inline constexpr double most_seeds_factor = 100;

/// Why a size says little, and which runs would say more.
inline std::string weakness(const SizeTransfer& size, const SweepWords& words) {
  const std::string where = words.at(size);
  const std::string& tuned = words.tuned;
  const double best = RateRun{.octave = size.best}.rate(words.centre);
  if (size.empty) return where + "no run has a loss";
  if (!size.trained) {
    return fmt::format("{}every {} diverged with some seed: try lower {}s", where, tuned, tuned);
  }
  if (size.seeds == 0) {
    return fmt::format("{}no seed has three {}s near the lowest loss: try {}s around {:.3g}", where,
                       tuned, tuned, best);
  }
  if (size.flat) {
    return fmt::format("{}the losses of all {}s are the same: there is no minimum", where, tuned);
  }
  if (size.cliff && size.best > size.low) {
    return fmt::format("{}the {} above the lowest loss diverges: try finer steps above {:.3g}",
                       where, tuned, best);
  }
  if (size.bracketed) {
    return fmt::format("{}no optimum is near the lowest loss: try more {}s around {:.3g}", where,
                       tuned, best);
  }
  return fmt::format("{0}the lowest loss lies at the edge of the {1}s tried: try {1}s {2} {3:.3g}",
                     where, tuned, size.best <= size.low ? "below" : "above", best);
}

/// Why a size has no optimum; empty where it has one.
inline std::string no_optimum(const SizeTransfer& size, const SweepWords& words) {
  return size.interior ? "" : weakness(size, words);
}

/// An inconclusive verdict that says what would end it.
inline TransferVerdict undecided(const Transfer& transfer, const SweepWords& words,
                                 const std::string& why, double factor) {
  TransferVerdict result{Verdict::inconclusive, why, factor};
  for (const SizeTransfer& size : transfer.sizes) {
    if (size.bracketed) continue;
    result.reason += ": " + weakness(size, words);
    return result;
  }
  if (!(factor < most_seeds_factor)) {
    result.reason += ": too close for seeds to tell; a wider range of sizes would";
    return result;
  }
  std::string list;
  for (const SizeTransfer& size : transfer.sizes) {
    if (std::fabs(size.weight) < 1e-9) continue;
    const auto more =
        static_cast<long>(std::ceil((factor - 1) * static_cast<double>(size.seeds) - 1e-9));
    result.more.push_back({size.size, more < 1 ? 1 : more});
    list += (list.empty() ? "" : ", ") + std::to_string(result.more.back().seeds) + " at " +
            words.axis + " " + std::to_string(size.size);
  }
  result.reason += ": more seeds are needed to decide, about " + list;
  return result;
}

/// Sizes whose optimum is known.
inline std::vector<SizeTransfer> judged_sizes(const Transfer& transfer) {
  std::vector<SizeTransfer> sizes;
  for (const SizeTransfer& size : transfer.sizes) {
    if (size.interior) sizes.push_back(size);
  }
  return sizes;
}

/// The first size that says nothing, and which runs would change that; empty without one.
inline std::string first_without_optimum(const Transfer& transfer, const SweepWords& words) {
  for (const SizeTransfer& size : transfer.sizes) {
    std::string why = no_optimum(size, words);
    if (!why.empty()) return why;
  }
  return "";
}

/// Why there is nothing to judge, and which runs would change that; empty if there is.
inline std::string too_little(const Transfer& transfer, const SweepWords& words) {
  if (transfer.sizes.size() < 2) return "a drift needs two sizes";
  if (judged_sizes(transfer).size() < 2) return first_without_optimum(transfer, words);
  for (const SizeTransfer& size : judged_sizes(transfer)) {
    if (size.loss > 0) continue;
    return words.at(size) +
           "no curve fits the losses: its lowest point is below 0; are the highest those of runs "
           "that diverged (nan)?";
  }
  if (transfer.curved) return "";
  for (const SizeTransfer& size : transfer.sizes) {
    if (size.cliff) return weakness(size, words);
  }
  return "the losses have no minimum beyond their noise: try more seeds, or " + words.tuned +
         "s further away";
}

/// Why runs that pass could not have failed in every way; empty if they could.
inline std::string too_little_to_pass(const Transfer& transfer, const SweepWords& words) {
  std::string why = first_without_optimum(transfer, words);
  if (!why.empty()) return why;
  const bool seeds = std::any_of(transfer.sizes.begin(), transfer.sizes.end(),
                                 [](const SizeTransfer& size) { return size.seeds > 1; });
  return seeds ? "" : "one seed cannot say how far those of others lie apart: try a second one";
}

/// A line for each size and run that the verdict leaves out.
inline std::vector<std::string> not_judged(const Transfer& transfer, const SweepWords& words) {
  std::vector<std::string> all;
  std::string alone;
  for (const SizeTransfer& size : transfer.sizes) {
    if (!std::isnan(size.blown_up)) {
      all.push_back(fmt::format(
          "{}losses from {} {:.3g} on that are far above those of the three {}s below: they count "
          "as those of runs that diverged",
          words.at(size), words.tuned, RateRun{.octave = size.blown_up}.rate(words.centre),
          words.tuned));
    }
    const std::string why = no_optimum(size, words);
    if (!why.empty()) {
      all.push_back(why);
      continue;
    }
    if (size.seeds == 1) alone += (alone.empty() ? "" : ", ") + std::to_string(size.size);
    if (std::isnan(size.transferred) || !std::isnan(size.regret.value)) continue;
    const double rate = RateRun{.octave = size.transferred}.rate(words.centre);
    all.push_back(
        fmt::format("{}what the transferred {} costs: it lies beyond the {}s tried: try {:.3g}",
                    words.at(size), words.tuned, words.tuned, rate));
  }
  if (alone.empty()) return all;
  all.push_back(
      fmt::format("one seed at {} {}: how far the optima of other seeds lie from its own is taken "
                  "from sizes with "
                  "more seeds and from earlier sweeps, {} octaves",
                  words.axis, alone, usual_scatter));
  return all;
}

inline std::string tolerated(const Transfer& transfer) {
  return transfer_number(transfer.expected - drift_tolerance) + " to " +
         transfer_number(transfer.expected + drift_tolerance);
}

inline TransferVerdict judge_drift(const Transfer& transfer, const SweepWords& words) {
  const double least = transfer.expected - drift_tolerance;
  const double most = transfer.expected + drift_tolerance;
  const std::string drifts = "the optimal " + words.tuned + " drifts by " +
                             interval_text(transfer.drift, 1, " octaves per octave");
  const Verdict verdict = place(transfer.drift, least, most);
  if (verdict == Verdict::inconclusive) {
    return undecided(transfer, words, drifts + ", partly outside of " + tolerated(transfer),
                     seeds_factor(transfer.drift, least, most));
  }
  return {verdict, drifts + (verdict == Verdict::pass ? ", within " : ", outside of ") +
                       tolerated(transfer)};
}

/// A failure if a transferred rate diverges; else inconclusive.
inline TransferVerdict judge_divergence(const Transfer& transfer, const SweepWords& words) {
  for (const SizeTransfer& size : transfer.sizes) {
    if (!std::isinf(size.regret.value)) continue;
    return {Verdict::fail, words.at(size) + "the transferred " + words.tuned + " diverges"};
  }
  return {};
}

inline TransferVerdict judge_regret(const Transfer& transfer, const SweepWords& words) {
  const std::vector<SizeTransfer> sizes = judged_sizes(transfer);
  const SizeTransfer& last = sizes.back();
  const std::string transferred = words.at(last) + "the transferred " + words.tuned + " ";
  if (std::isnan(last.regret.value)) {
    return {Verdict::inconclusive, transferred + "lies beyond those tried"};
  }
  const double allowed = regret_tolerance * last.loss;
  const Verdict verdict = place(last.regret, -HUGE_VAL, allowed);
  const std::string costs =
      transferred + "costs " + interval_text(last.regret, last.loss / 100, " % of the loss");
  if (verdict == Verdict::inconclusive) {
    return undecided(transfer, words, costs + ", partly above 2 %",
                     seeds_factor(last.regret, -HUGE_VAL, allowed));
  }
  return {verdict, costs + (verdict == Verdict::pass ? "" : ", more than 2 %")};
}

/// The verdict, without what it leaves out.
inline TransferVerdict judged(const Transfer& transfer, const SweepWords& words) {
  TransferVerdict diverging = judge_divergence(transfer, words);
  const std::string little = too_little(transfer, words);
  if (!little.empty()) {
    return diverging.verdict == Verdict::fail ? diverging
                                              : TransferVerdict{Verdict::inconclusive, little};
  }
  TransferVerdict drift = judge_drift(transfer, words);
  TransferVerdict regret = judge_regret(transfer, words);
  if (drift.verdict == Verdict::fail) return drift;
  if (diverging.verdict == Verdict::fail) return diverging;
  if (regret.verdict == Verdict::fail) return regret;
  if (drift.verdict == Verdict::inconclusive) return drift;
  if (regret.verdict == Verdict::inconclusive) return regret;
  const std::string both = drift.reason + "; " + regret.reason;
  const std::string missing = too_little_to_pass(transfer, words);
  if (missing.empty()) return {Verdict::pass, both};
  return {Verdict::inconclusive, missing + "; without it, " + both};
}

}  // namespace detail

/// Whether the rate, or what else was `tuned`, transfers along an axis ("width", "depth", "horizon").
/// Equation: pass: the 95 % intervals of the drift, and of the regret at the largest size, lie within
///           expected ± 0.3 octaves per octave and below 2 % of the re-tuned loss. fail: one of them
///           lies wholly outside, or a transferred rate diverges. Else inconclusive, as are fewer than
///           two sizes and curves without a minimum. Sizes without an optimum among their rates are left
///           out; with one of them, or with one seed at every size, a sweep may fail but not pass.
/// Accuracy: where the drift is at the tolerance, 0.7 to 0.8 % of sweeps pass and 0.8 to 1.0 % fail (measured, 4000 synthetic
///           sweeps of each kind, whose curves are cubics; 2.5 % at most by the intervals). Of 4000 tables drawn like those of
///           users, 1 of 324 passes and 1 of 1433 failures are wrong (docs/checks/learning_rate_transfer.md).
/// Requires: losses are positive. `centre` is what octave 0 stands for.
inline TransferVerdict judge(const Transfer& transfer, const std::string& axis, double centre = 1,
                             const std::string& tuned = "rate") {
  const detail::SweepWords words{axis, centre, tuned};
  TransferVerdict verdict = detail::judged(transfer, words);
  verdict.not_judged = detail::not_judged(transfer, words);
  return verdict;
}

/// A sweep that has time left stops early only if intervals this many times as wide as the 95 % ones
/// decide the verdict too: three standard errors. Each such look adds at most 0.3 % to the errors of
/// the last one.
/// Source:   Haybittle 1971, doi:10.1259/0007-1285-44-526-793; Peto and others 1976
inline constexpr double early_stop = 1.5;

/// The same with intervals so many times as wide.
inline Transfer widened(Transfer transfer, double factor) {
  const auto widen = [&](IntervalEstimate& e) {
    if (!std::isfinite(e.value)) return;
    e.low = e.value - factor * (e.value - e.low);
    e.high = e.value + factor * (e.high - e.value);
    e.fixed *= factor;
  };
  widen(transfer.drift);
  for (SizeTransfer& size : transfer.sizes) widen(size.regret);
  return transfer;
}

}  // namespace scalewise::check
