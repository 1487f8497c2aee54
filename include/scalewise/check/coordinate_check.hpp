// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/fault.hpp"
#include "scalewise/check/judge.hpp"

namespace scalewise::check {

/// What a coordinate check has found.
struct Report {
  Verdict verdict = Verdict::inconclusive;
  std::vector<Judgement> judgements;  // quantities in the order of Records, steps in time
  std::string diagnosis;              // the likeliest cause of a failure; empty when nothing failed
  // Names that are no observable's and no tensor's, each with the nearest that is: recorded, not judged.
  std::vector<std::string> unknown;
};

namespace detail {

/// The failure that lies farthest from its prediction, of the earliest step that has one: what a
/// reader should look at first.
inline const Judgement* worst(const std::vector<Judgement>& all) {
  const Judgement* found = nullptr;
  double farthest = -1;
  for (const Judgement& j : all) {
    if (j.verdict != Verdict::fail) continue;
    double distance = 0;
    if (j.measured && j.expected && !j.expected->is_zero()) {
      distance =
          (std::max)(j.measured->slope - j.expected->high, j.expected->low - j.measured->slope);
    }
    if (found != nullptr && j.step > found->step) continue;
    if (found == nullptr || j.step < found->step || distance > farthest) {
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

/// What fails although the rule says so itself: the fastest growth that the rule predicts.
inline const Judgement* predicted_growth(const std::vector<Judgement>& all,
                                         const Tolerance& tolerance) {
  const Judgement* found = nullptr;
  for (const Judgement& j : all) {
    if (j.verdict != Verdict::fail || j.quantity.signal != Signal::change || !j.measured) continue;
    if (!j.expected || !(j.expected->high > tolerance.growth)) continue;
    if (found == nullptr || j.measured->slope > found->measured->slope) found = &j;
  }
  return found;
}

/// How much of what was measured a prediction explains: judgements whose slope lies in its band.
/// What the rule's table says most directly counts first: activations at initialization and the
/// first update. Later steps are full of consequences and do not count.
struct Explained {
  std::size_t direct = 0;
  std::size_t others = 0;

  friend bool operator==(const Explained&, const Explained&) = default;
  friend bool operator<(const Explained& a, const Explained& b) {
    return std::tie(a.direct, a.others) < std::tie(b.direct, b.others);
  }
};

inline Explained explained(const std::vector<Judgement>& all, const Prediction& prediction,
                           const Plan& plan, const Tolerance& tolerance) {
  Explained count;
  for (const Judgement& j : all) {
    const auto band = expected_slope(prediction, plan, j.quantity, j.step);
    if (!band || j.step > 1) continue;
    Judgement again = j;
    again.reason.clear();
    // Growth that is predicted is explained.
    if (j.quantity.signal == Signal::change) again.quantity.signal = Signal::value;
    judge(again, band, tolerance);
    if (again.verdict == Verdict::fail) continue;
    const bool direct =
        j.quantity.signal == Signal::update || (j.quantity.signal == Signal::value && j.step == 0);
    ++(direct ? count.direct : count.others);
  }
  return count;
}

/// The quantity, its slope, and what was expected.
inline std::string finding(const Judgement& j) {
  return j.quantity.name + " (" + std::string(word(signal_words, j.quantity.signal)) + ") " +
         (j.measured ? slope_text(j.measured->slope) : j.reason) + " at step " +
         std::to_string(j.step) + ", expected " +
         (j.expected ? band_text(*j.expected) : "finite numbers") + ": ";
}

/// The mistake whose own prediction explains the most; none when none explains more than the rule.
inline std::string diagnose(const std::vector<Judgement>& judgements,
                            const std::vector<Member>& family, const Assumptions& assumptions,
                            const Tolerance& tolerance) {
  const Judgement* first = worst(judgements);
  if (first == nullptr) return {};
  if (const Judgement* growth = predicted_growth(judgements, tolerance)) {
    return finding(*growth) + "the rule itself lets it grow";
  }
  const Plan& plan = family.front().plan;
  const double log_ratio =
      std::log(static_cast<double>(family.back().size) / static_cast<double>(family.front().size));
  Explained most = explained(judgements, prediction_of(family, assumptions), plan, tolerance);
  std::string cause;
  for (const Fault& fault : possible_faults(family)) {
    std::vector<Member> wrong = family;
    for (Member& member : wrong) member.plan = with_fault(member.plan, plan, fault);
    const double backward = std::log(scaled_gradient(family.back().plan, plan, fault)) / log_ratio;
    const Explained count =
        explained(judgements, prediction_of(wrong, assumptions, backward), plan, tolerance);
    if (count < most || (count == most && cause.empty())) continue;
    if (count == most) {
      cause += " or " + to_string(fault);
    } else {
      cause = to_string(fault);
    }
    most = count;
  }
  return finding(*first) + (cause.empty() ? "no single part of the rule explains it" : cause);
}

}  // namespace detail

namespace detail {

/// What to say of a recorded name that stands for nothing; empty for one that does.
inline std::string unknown_name(const Quantity& quantity, const Plan& plan) {
  const std::string role = role_name(quantity.name);
  const bool activation = quantity.signal == Signal::value || quantity.signal == Signal::change;
  if (activation) {
    return is_observable(role) ? ""
                               : quantity.name + ": no observable; " + nearest_observable(role);
  }
  if (group_of(plan, quantity.name)) return "";
  Nearest nearest(role);
  for (const Entry& entry : plan.entries) nearest.offer(role_name(entry.name));
  return quantity.name + ": no tensor of the plan; " + nearest.hint();
}

}  // namespace detail

/// Does training follow the rule? Fits every recorded quantity's growth with the size, step by step,
/// and compares it with the prediction from the rule's plans.
/// Source:   the check by eye is that of Yang et al. 2022 (arXiv:2203.03466v2), section D.1
/// Requires: `family`, the plans of the recorded sizes, smallest first.
/// Throws:   InvalidInput when nothing was recorded, or fewer than two sizes are given.
inline Report coordinate_check(const Records& records, const std::vector<Member>& family,
                               const Assumptions& assumptions = {}, Tolerance tolerance = {}) {
  if (records.empty()) throw InvalidInput("records", "none", "something recorded");
  if (family.size() < 2) {
    throw InvalidInput("family", std::to_string(family.size()) + " plans", "at least two sizes");
  }
  const bool depth = scales_of(family).layers > 0;
  if (depth) tolerance = along_depth(tolerance);
  const Prediction prediction = detail::prediction_of(family, assumptions);
  Report report;
  for (const auto& [quantity, steps] : records.all()) {
    std::string unknown = detail::unknown_name(quantity, family.front().plan);
    if (!unknown.empty() && quantity.signal != Signal::change) {
      report.unknown.push_back(std::move(unknown));
    }
    for (const auto& [step, runs] : steps) {
      Judgement j = measure(quantity, step, runs);
      // Along the depth, gradients of many layers add up more and more alike once training begins.
      if (depth && quantity.signal == Signal::gradient && step > 0) continue;
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
