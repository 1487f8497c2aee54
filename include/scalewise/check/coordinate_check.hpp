// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/fault.hpp"
#include "scalewise/check/judge.hpp"

namespace scalewise::check {

/// What a coordinate check has found.
struct Report {
  Verdict verdict = Verdict::inconclusive;
  std::vector<Judgement> judgements;  // quantities in the order of Records, steps in time
  std::string diagnosis;              // the likeliest cause of a failure; empty when nothing failed
};

namespace detail {

/// The failure that lies farthest from its prediction: what a reader should look at first.
inline const Judgement* worst(const std::vector<Judgement>& all) {
  const Judgement* found = nullptr;
  double farthest = -1;
  for (const Judgement& j : all) {
    if (j.verdict != Verdict::fail) continue;
    double distance = 0;
    if (j.measured && j.expected && !j.expected->is_zero()) {
      distance = std::max(j.measured->slope - j.expected->high, j.expected->low - j.measured->slope);
    }
    if (distance > farthest) {
      farthest = distance;
      found = &j;
    }
  }
  return found;
}

inline Prediction prediction_of(const std::vector<Member>& family, Assumptions assumptions,
                                double backward = 0) {
  assumptions.backward = backward;
  return {scales_of(family), family.front().plan.shape, assumptions};
}

/// How much of what was measured a prediction explains: the judgements whose slope lies in its band.
inline std::size_t explained(const std::vector<Judgement>& all, const Prediction& prediction,
                             const Plan& plan, const Tolerance& tolerance) {
  std::size_t count = 0;
  for (const Judgement& j : all) {
    const auto band = expected_slope(prediction, plan, j.quantity, j.step);
    if (!band) continue;
    Judgement again = j;
    again.reason.clear();
    // Growth that is predicted is explained.
    if (j.quantity.signal == Signal::change) again.quantity.signal = Signal::value;
    judge(again, band, tolerance);
    if (again.verdict != Verdict::fail) ++count;
  }
  return count;
}

/// The mistake whose own prediction explains the most; none when none explains more than the rule.
inline std::string diagnose(const std::vector<Judgement>& judgements,
                            const std::vector<Member>& family, const Assumptions& assumptions,
                            const Tolerance& tolerance) {
  const Judgement* first = worst(judgements);
  if (first == nullptr) return {};
  std::string text = first->quantity.name + " (" +
                     std::string(word(signal_words, first->quantity.signal)) + ") " +
                     (first->measured ? slope_text(first->measured->slope) : first->reason) +
                     " at step " + std::to_string(first->step) + ", expected " +
                     (first->expected ? band_text(*first->expected) : "finite numbers") + ": ";
  const Plan& plan = family.front().plan;
  const double octaves = std::log(static_cast<double>(family.back().size) /
                                  static_cast<double>(family.front().size));
  std::size_t most =
      explained(judgements, prediction_of(family, assumptions), plan, tolerance);
  if (std::all_of(judgements.begin(), judgements.end(), [](const Judgement& j) {
        return j.verdict != Verdict::fail || j.reason == "grows with the size";
      })) {
    return text + "the rule itself lets it grow";
  }
  std::string cause;
  for (const Fault& fault : possible_faults(family)) {
    std::vector<Member> wrong = family;
    for (Member& member : wrong) member.plan = with_fault(member.plan, plan, fault);
    const double backward =
        std::log(scaled_gradient(family.back().plan, plan, fault)) / octaves;
    const std::size_t count =
        explained(judgements, prediction_of(wrong, assumptions, backward), plan, tolerance);
    if (count < most || (count == most && cause.empty())) continue;
    cause = count == most ? cause + " or " + to_string(fault) : to_string(fault);
    most = count;
  }
  return text + (cause.empty() ? "no single part of the rule explains it" : cause);
}

}  // namespace detail

/// Does training follow the rule? Fits every recorded quantity's growth with the size, step by step,
/// and compares it with the prediction from the rule's plans.
/// Source:   the check by eye is that of Yang et al. 2022 (arXiv:2203.03466v2), section D.1
/// Requires: `family`, the plans of the recorded sizes, smallest first.
/// Throws:   InvalidInput when nothing was recorded, or fewer than two sizes are given.
inline Report coordinate_check(const Records& records, const std::vector<Member>& family,
                               const Assumptions& assumptions = {},
                               const Tolerance& tolerance = {}) {
  if (records.empty()) throw InvalidInput("records", "none", "something recorded");
  if (family.size() < 2) {
    throw InvalidInput("family", std::to_string(family.size()) + " plans", "at least two sizes");
  }
  const Prediction prediction = detail::prediction_of(family, assumptions);
  Report report;
  for (const auto& [quantity, steps] : records.all()) {
    for (const auto& [step, runs] : steps) {
      Judgement j = measure(quantity, step, runs);
      judge(j, expected_slope(prediction, family.front().plan, quantity, step), tolerance);
      report.judgements.push_back(std::move(j));
    }
  }
  report.verdict = Verdict::pass;
  bool judged = false;
  for (const Judgement& j : report.judgements) {
    if (!j.expected && j.reason != "not finite") continue;
    judged = true;
    report.verdict = worse(report.verdict, j.verdict);
  }
  if (!judged) report.verdict = Verdict::inconclusive;
  report.diagnosis = detail::diagnose(report.judgements, family, assumptions, tolerance);
  return report;
}

}  // namespace scalewise::check
