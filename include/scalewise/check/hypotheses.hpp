// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/fault_scales.hpp"
#include "scalewise/check/judge.hpp"

namespace scalewise::check {

/// A mistake with what it would make of training.
struct Hypothesis {
  Fault fault;
  Prediction prediction;
};

inline Hypothesis hypothesis_of(const Scales& scales, const Shape& shape, const Fault& fault,
                                Assumptions assumptions) {
  assumptions.backward = backward_power(scales, fault);
  return {fault, Prediction(with_fault(scales, fault), shape, assumptions)};
}

/// How a mistake stands against what was measured.
struct Standing {
  Fault fault;
  // Twice the logarithm of the likelihood that the rule has more than it; below 0 it explains more.
  double worse = 0;
  bool excluded = false;
  // Whether records like these, precise enough, exclude it if the rule is followed.
  bool excludable = false;
  // Of the quantities that would: the one that tells most.
  const Judgement* witness = nullptr;
  double separation = 0;  // of the rule's and the mistake's predictions there, beyond the margin
};

namespace detail {

/// By how much two bands are apart.
inline double gap(const Band& a, const Band& b) {
  if (a.is_zero() || b.is_zero()) return a.is_zero() == b.is_zero() ? 0 : HUGE_VAL;
  return (std::max)({0.0, a.low - b.high, b.low - a.high});
}

/// Squared deviate, up to where a deviation is as good as certain. What is exact tells mistakes apart
/// that are alike in direction.
inline double misfit(double deviation, Regime regime) {
  const double d = (std::min)(deviation, regime == Regime::exact ? 20.0 : 6.0);
  return d * d;
}

inline double deviation_under(const Judgement& j, const Expectation& e, const Criteria& criteria) {
  if (j.measured) return deviation_of(*j.measured, e, criteria);
  return j.curve.is_zero() == e.band.is_zero() ? 0 : HUGE_VAL;
}

}  // namespace detail

/// Whether a judgement can tell hypotheses apart: it was measured, or is zero in all runs.
inline bool is_evidence(const Judgement& j) {
  return j.expected && (j.measured || (j.curve.finite && j.curve.is_zero()));
}

/// Compares a mistake with the rule on everything that both predict.
/// Equation: worse = Σ (misfit under the mistake - misfit under the rule) · weight. Quantities that
///           are exact count 1 each, since each has its own tensor; n others depend on each other and
///           count as 20
inline Standing standing_of(const Hypothesis& h, const std::vector<Judgement>& all,
                            const Criteria& criteria, double threshold) {
  Standing standing{h.fault};
  double dependent = 0;  // their part of the sum
  double count = 0;
  for (const Judgement& j : all) {
    if (!is_evidence(j)) continue;
    const Regime regime = j.expected->regime;
    const bool before_later = regime == Regime::first || regime == Regime::mean;
    if (before_later) ++count;
    const auto wrong = expected(h.prediction, j.subject, j.curve.quantity.signal, j.moves);
    if (!wrong || wrong->band == j.expected->band) continue;
    Expectation under = *wrong;
    under.regime = j.expected->regime;
    const double deviation = detail::deviation_under(j, under, criteria);
    const double worse =
        detail::misfit(deviation, under.regime) - detail::misfit(j.deviation, under.regime);
    if (regime == Regime::exact) standing.worse += worse;
    if (before_later) dependent += worse;
    if (deviation > threshold) standing.excluded = true;
    const double separation =
        detail::gap(j.expected->band, under.band) - criteria.margin(under.regime);
    const double tells = separation / (j.measured ? j.measured->tail_error : 1e-3);
    if (!(tells > 0)) continue;  // nothing between the two, or an infinite error
    standing.excludable = true;
    if (tells > standing.separation) {
      standing.separation = tells;
      standing.witness = &j;
    }
  }
  // Records of hundreds of quantities have 16 to 30 independent directions.
  constexpr double effective = 20;
  standing.worse += dependent * (std::min)(1.0, effective / (std::max)(count, 1.0));
  return standing;
}

}  // namespace scalewise::check
