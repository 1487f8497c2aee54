// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "scalewise/check/coordinate_report.hpp"
#include "scalewise/check/hypotheses.hpp"
#include "scalewise/check/judge.hpp"

// The text of a report about a failure, and whether a mistake may be named for it.

namespace scalewise::check::detail {

/// The quantity, its slope, and what was expected.
inline std::string finding(const Judgement& j) {
  const std::string what =
      fmt::format("{} ({})", j.curve.quantity.name, word(signal_words, j.curve.quantity.signal));
  if (j.outlier)
    return fmt::format("{} at step {} is {}", what, j.curve.step, to_string(*j.outlier));
  return fmt::format(
      "{} {} at step {}, expected {}", what,
      j.measured ? slope_text(j.measured->slope)
                 : (j.curve.finite ? (j.curve.is_zero() ? "zero" : j.reason) : "not finite"),
      j.curve.step, j.expected ? band_text(j.expected->band) : "finite numbers");
}

/// The failure that deviates most, of the earliest step that has one, of those that `counts` takes; null for none.
template <class Counts>
const Judgement* first_failure(const Report& report, const Counts& counts) {
  const Judgement* found = nullptr;
  for (const Judgement& j : report.judgements) {
    if (j.verdict != Verdict::fail || !counts(j)) continue;
    if (found == nullptr || j.curve.step < found->curve.step ||
        (j.curve.step == found->curve.step && j.farthest() > found->farthest())) {
      found = &j;
    }
  }
  return found;
}

/// Whether the entries of no first update are of one size, as Adam and optimizers like it make them. Entries of a normal
/// distribution have 2/π, those of one size 1.
/// Equation: (Σ|x|)²/(n Σx²) of every tensor of 64 entries or more, in every run, is below 0.9
/// `records`: with layers taken together.
inline bool no_even_update(const Report& report, const Records& records) {
  double most = 0;
  for (const Judgement& j : report.judgements) {
    if (!j.expected || j.expected->measure != Measure::entry) continue;
    const Records::Runs* runs = records.find(j.curve.quantity, j.curve.step);
    for (const auto& [run, m] : *runs) {
      if (m.count < 64 || m.sum_squares == 0) continue;
      most =
          (std::max)(most, m.sum_abs * m.sum_abs / (static_cast<double>(m.count) * m.sum_squares));
    }
  }
  return most > 0 && most < 0.9;
}

/// What records of a list of tensors do not show: multipliers after the modules whose outputs are recorded, and the rate of
/// one matrix under Muon, whose updates may have any rank.
inline std::vector<std::string> unseen_of_list(const Scales& scales) {
  std::vector<std::string> names, lines;
  bool by_matrix = false;
  for (const auto& [name, tensor] : scales.tensors) {
    by_matrix = by_matrix || tensor.normalization == policy::Normalization::by_matrix;
    const bool multiplies =
        tensor.present && !tensor.multiplier.is_zero() && tensor.multiplier != Band(0);
    if (multiplies && name != scales.head) names.push_back(name);
  }
  if (!names.empty())
    lines.push_back("multiplier missing after " + scalewise::detail::up_to_three(names));
  if (by_matrix)
    lines.emplace_back("the rate of one matrix under Muon (check_optimizer() compares it)");
  return lines;
}

/// How well a mistake explains the failures.
struct Explanation {
  bool holds = false;                  // whether it may be named
  const Judgement* failure = nullptr;  // the first that it explains
  const Judgement* left = nullptr;     // the failure that it leaves
};

/// A mistake is named where no exact quantity, and no mean of initializations, contradicts it. Where some of these fail
/// for another reason, it is named if it is whole (a part that is missing or applied twice) and explains others of them.
inline Explanation explanation_by(const Hypothesis& mistake, const Report& report,
                                  const Criteria& criteria) {
  std::set<const Judgement*> fits;
  Explanation found;
  double most = report.thresholds.failure;
  bool explains = false;
  bool contradicted = false;
  for (const Judgement& j : report.judgements) {
    if (!is_evidence(j)) continue;
    const auto wrong = expected(mistake.prediction, j.subject, j.curve.quantity.signal, j.moves);
    if (!wrong) continue;
    Expectation under = *wrong;
    under.regime = j.expected->regime;
    const double deviation = j.outlier ? HUGE_VAL : deviation_under(j, under, criteria);
    const bool firm = under.regime == Regime::exact || under.regime == Regime::mean;
    if (deviation <= report.thresholds.failure) {
      fits.insert(&j);
      explains = explains || (firm && j.verdict == Verdict::fail);
    } else if (firm && j.verdict != Verdict::fail && !(wrong->band == j.expected->band)) {
      contradicted = true;
    } else if (firm && j.verdict == Verdict::fail && deviation > most) {
      most = deviation;
      found.left = &j;
    }
  }
  found.failure = first_failure(report, [&](const Judgement& j) { return fits.contains(&j); });
  found.holds = !contradicted && (found.left == nullptr || (mistake.fault.off == 0 && explains));
  return found;
}

/// Whether an exponent that is off is the last on its side of those that were tried, and no whole part was.
inline bool is_last_tried(const Fault& fault, const std::vector<Standing>& all) {
  return fault.off != 0 && std::none_of(all.begin(), all.end(), [&](const Standing& other) {
           // Whole: missing or applied twice. Otherwise of the same sign, and larger.
           return other.fault.ingredient == fault.ingredient &&
                  (other.fault.off == 0 || other.fault.off / fault.off > 1);
         });
}

/// Mistakes that fit alike; exponents that are off only where no whole part is wrong.
inline std::string names_of(const std::vector<Standing>& alike, const std::vector<Standing>& all) {
  const bool whole =
      std::any_of(alike.begin(), alike.end(), [](const Standing& s) { return s.fault.off == 0; });
  std::string names;
  for (const Standing& standing : alike) {
    if (whole && standing.fault.off != 0) continue;
    names += (names.empty() ? "" : " or ") + to_string(standing.fault);
    if (is_last_tried(standing.fault, all)) names += " or beyond";
  }
  return names;
}

}  // namespace scalewise::check::detail
