// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/expectation.hpp"
#include "scalewise/check/growth.hpp"
#include "scalewise/check/judgeable.hpp"
#include "scalewise/check/outlier.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/numeric/quantile.hpp"

namespace scalewise::check {

/// When a slope contradicts its prediction.
struct Criteria {
  // How often chance makes a correct set-up fail, over all its slopes together.
  double error_rate = 0.005;
  // How many slopes of a correct set-up chance puts in doubt if they do not depend on each other. While
  // one is in doubt a check does not pass; more runs make it pass or fail.
  double doubts = 0.2;

  // By how much a limit of large sizes may be missed at finite ones, beyond what the bending below
  // takes up: the largest seen in correct set-ups, see docs/checks/coordinate_check.md.
  double exact = 0.02;
  double mean = 0.03;
  double first = 0.06;
  double later = 0.25;

  // By how much one size, or one layer, may be off from the others where the prediction is exact.
  // Units: a logarithm
  double outlier = 0.1;

  Bending bending{0.05, 0.15, 1.5};

  // Changes that grow faster than this fail, even if the rule predicts it: first where it
  // predicts growth for certain, then where its band leaves it open. νGPT, which counts on an alignment of 3/4, lets
  // the first steps, which are aligned almost fully, grow by a quarter.
  double growth = 0.1;
  double open_growth = 0.25;

  /// How far a slope may be from its limit in this regime.
  /// Units:    an exponent of the size
  double margin(Regime regime) const {
    if (regime == Regime::exact) return exact;
    return regime == Regime::mean ? mean : regime == Regime::first ? first : later;
  }
};

/// One quantity at one step, measured and judged.
/// Units:    slopes of log(root mean square) against log(size)
struct Judgement {
  SizeCurve curve;
  Subject subject;
  long moves = 0;                       // steps until then that moved something
  std::optional<Expectation> expected;  // none: recorded, not judged
  std::optional<Growth> measured;       // none: zero, not finite, or too few sizes
  std::optional<Outlier> outlier;  // of what is exact: the farthest; once judged, one that fails
  double deviation = 0;            // from the prediction, as a standard normal deviate
  Verdict verdict = Verdict::inconclusive;
  std::string reason;  // of what did not pass

  /// That of the slope, or of the size or layer that fails.
  double farthest() const { return outlier ? outlier->deviation : deviation; }
};

/// "+0.50"; "zero" for what is exactly zero.
inline std::string slope_text(double slope) {
  if (slope == -HUGE_VAL) return "zero";
  const double rounded = std::round(100 * slope) / 100;
  return fmt::format("{:+.2f}", rounded == 0 ? 0 : rounded);  // never -0.00
}

/// "-0.50 to +0.00".
inline std::string band_text(const Band& band) {
  if (band.is_zero()) return "zero";
  if (band.low == band.high) return slope_text(band.low);
  return slope_text(band.low) + " to " + slope_text(band.high);
}

/// By how much a slope lies outside a band: above is positive, below negative, inside is 0.
/// Units:    an exponent, as the slope
inline double distance(double slope, const Band& band) {
  return slope > band.high ? slope - band.high : slope < band.low ? slope - band.low : 0;
}

/// How unlikely a measured growth is under an expectation.
/// Equation: the part of the distance beyond the margin over the error of the tails, as a deviate
/// Units:    standard normal deviates; infinite where exactly zero was expected or measured
inline double deviation_of(const Growth& growth, const Expectation& expected,
                           const Criteria& criteria) {
  if (expected.band.is_zero()) return HUGE_VAL;
  const double beyond =
      std::abs(distance(growth.slope, expected.band)) - criteria.margin(expected.regime);
  return beyond <= 0 ? 0 : numeric::normal_deviate(beyond / growth.tail_error, growth.degrees);
}

namespace detail {

/// The largest size must be at least this many times the smallest: a slope over less is a guess.
inline constexpr long least_span = 4;
inline constexpr std::size_t least_sizes = 3;

inline bool spans(const SizeCurve& curve) {
  return curve.points.size() >= least_sizes &&
         curve.points.back().size / least_span >= curve.points.front().size;
}

}  // namespace detail

/// The size, or the layer of one, that is farthest from its plan; none of what is not exact, nor of steps that Muon makes
/// nearly orthogonal, which differ a little between matrices. Of first updates behind a head that begins at zero, only the
/// layer: an epsilon, which bends what comes from small gradients, is that of all layers of a size.
/// `records`: with their layers.
inline std::optional<Outlier> outlier_of(const Judgement& j, const Records& records,
                                         const std::vector<Member>& family, double margin) {
  if (!j.measured || !j.expected || j.expected->band.is_zero()) return {};
  const Measure measure = j.expected->measure;
  const bool exact = j.expected->regime == Regime::exact;
  const bool by_entry = measure == Measure::entry, per_gradient = measure == Measure::per_gradient;
  if (!exact && !by_entry) return {};
  if (j.curve.quantity.signal == Signal::update && measure == Measure::rms) return {};
  std::optional<Outlier> found;
  if (exact) found = outlying_size(j.curve, family, margin);
  // The tensors of a list are judged one by one.
  if (family.front().plan.shape.blocks == Blocks::listed) return found;
  const auto number = [&](const std::string& name, const Run& run, const Moments& moments) {
    if (!per_gradient) return by_entry ? moments.entry() : moments.rms();
    const Records::Runs* gradients = records.find({Signal::gradient, name}, j.curve.step - 1);
    if (gradients == nullptr || !gradients->contains(run)) return 0.0;
    return moments.rms() / gradients->at(run).rms();
  };
  std::optional<Outlier> layer =
      outlying_layer(records, family, j.curve.quantity, j.curve.step, number, margin);
  // A layer that is beyond doubt says more than the size that it moves. No threshold of fewer than 8000 slopes is higher.
  constexpr double beyond_doubt = 5;
  const double size = found ? (std::min)(found->deviation, beyond_doubt) : 0;
  return layer && layer->deviation > size ? layer : found;
}

/// Measures the growth of everything recorded that is predicted, or not.
class Measurements {
 public:
  /// `power`: with which power of the size the variance between seeds falls.
  Measurements(const Records& records, const Prediction& prediction, const Plan& plan,
               const Judgeable& judgeable, double power, const Criteria& criteria) {
    for (const auto& [quantity, steps] : records.all()) {
      const Subject subject = subject_of(plan, quantity);
      for (const auto& [step, runs] : steps) {
        if (judgeable.idle.contains(step) && curve_of(quantity, step, runs).finite) continue;
        Judgement j;
        j.subject = subject;
        j.moves = judgeable.moves(step);
        j.expected = expected(prediction, subject, quantity.signal, j.moves);
        const bool moves = quantity.signal == Signal::gradient || quantity.signal == Signal::update;
        if (moves && judgeable.rounding.contains(quantity.name)) j.expected.reset();
        const Measure measure = j.expected ? j.expected->measure : Measure::rms;
        const Records::Runs* gradient = nullptr;
        if (measure == Measure::per_logits) {
          gradient = records.find(
              {Signal::gradient, std::string(architecture::observable("logits"))}, step);
          if (gradient == nullptr) j.expected.reset();
        }
        if (measure == Measure::per_gradient) {
          gradient = records.find({Signal::gradient, quantity.name}, step - 1);
          // Without it the update itself is compared, which the gradient bends.
          if (gradient == nullptr) {
            j.expected.reset();
            if (prediction.roles() == nullptr)
              j.expected = Expectation{prediction.update(*subject.group, j.moves), Regime::later};
          }
        }
        j.curve = curve_of(quantity, step, runs,
                           measure == Measure::entry ? &Moments::entry : &Moments::rms, gradient);
        all_.push_back(std::move(j));
      }
    }
    typical_scatter(power);
    for (Judgement& j : all_) measure(j, power, criteria);
    if (prediction.roles() != nullptr) pass_over_zeros();
  }

  std::vector<Judgement> take() && { return std::move(all_); }

  /// The names of what pass_over_zeros() has found.
  const std::vector<std::string>& zeros() const { return zeros_; }

 private:
  static bool exact(const Judgement& j) {
    return j.expected && j.expected->regime == Regime::exact;
  }

  /// The median scatter of each signal, which stands for that many degrees of freedom of a curve's.
  void typical_scatter(double power) {
    constexpr double weight = 8;
    std::map<Signal, std::vector<double>> variances;
    for (const Judgement& j : all_) {
      if (exact(j) || j.curve.degrees() == 0) continue;
      variances[j.curve.quantity.signal].push_back(scatter_of(j.curve, power).variance);
    }
    for (auto& [signal, all] : variances) {
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
      std::nth_element(all.begin(), middle, all.end());
      typical_[signal] = {*middle, weight, power};
    }
  }

  void measure(Judgement& j, double power, const Criteria& criteria) {
    const SizeCurve& curve = j.curve;
    if (!curve.finite) {
      // A rate that is too high for the model says nothing of how the rule scales it.
      const bool diverged = curve.step > 0;
      j.verdict = diverged ? Verdict::inconclusive : Verdict::fail;
      j.reason = diverged ? "not finite; try a lower learning rate" : "not finite";
    } else if (curve.is_zero()) {
      // A tensor that the shape does not describe may get no gradient.
      if (j.subject.extra && curve.quantity.signal == Signal::update) j.expected.reset();
      return;
    } else if (curve.zeros > 0) {
      // A short batch can leave a gradient zero in one run; that of all runs of a size is the model's.
      if (j.expected && curve.zero_sizes > 0) j.verdict = Verdict::fail;
      j.reason = "zero in some runs only";
    } else if (!detail::spans(curve)) {
      j.reason = fmt::format("needs {} sizes, the largest {} times the smallest",
                             detail::least_sizes, detail::least_span);
    } else if (curve.degrees() == 0) {
      j.reason = "needs 2 seeds of one size";
    } else if (exact(j)) {
      j.measured = growth_within_seeds(curve);
      if (!j.measured) j.measured = growth_of(curve, scatter_of(curve, 0), {});
    } else {
      const Scatter& typical = typical_[curve.quantity.signal];
      const bool bends = !j.expected || j.expected->regime != Regime::mean;
      j.measured =
          growth_of(curve, scatter_of(curve, power, typical), bends ? criteria.bending : Bending{});
    }
  }

  /// The tensors of a list say nothing of weights that begin at zero on purpose, behind which activations and gradients are
  /// zero until they have moved. Parameters that should not be zero fail themselves.
  void pass_over_zeros() {
    for (Judgement& j : all_) {
      const Quantity& quantity = j.curve.quantity;
      if (quantity.signal == Signal::parameter || !j.curve.finite || !j.curve.is_zero()) continue;
      if (!j.expected || j.expected->band.is_zero()) continue;
      j.expected.reset();
      const bool known = std::find(zeros_.begin(), zeros_.end(), quantity.name) != zeros_.end();
      if (!known) zeros_.push_back(quantity.name);
    }
  }

  std::vector<Judgement> all_;
  std::vector<std::string> zeros_;
  std::map<Signal, Scatter> typical_;
};

/// Deviations from which a slope is in doubt, and from which it is wrong.
/// Units:    standard normal deviates
struct Thresholds {
  double doubt = 0;
  double failure = 0;
};

/// The thresholds for a number of slopes.
/// Equation: of n slopes, chance puts one beyond doubt with the probability doubts/n, and beyond failure
///           with error_rate/n, both sides together
inline Thresholds thresholds_of(const Criteria& criteria, std::size_t slopes) {
  const auto n = static_cast<double>((std::max)(slopes, std::size_t{1}));
  return {numeric::normal_upper_quantile(criteria.doubts / n / 2),
          numeric::normal_upper_quantile(criteria.error_rate / n / 2)};
}

/// Compares the measured slope with the expected one. It fails where they differ by more than the
/// threshold of failure, and still do between the two largest sizes; and where one size or layer is farther from the
/// others than that.
inline void judge(Judgement& j, const Criteria& criteria, const Thresholds& thresholds) {
  if (!j.expected || !j.reason.empty()) return;
  const Band& band = j.expected->band;
  if (j.curve.is_zero() || band.is_zero()) {
    const bool agree = j.curve.is_zero() == band.is_zero();
    j.verdict = agree ? Verdict::pass : Verdict::fail;
    j.deviation = agree ? 0 : HUGE_VAL;
    if (!agree) j.reason = band.is_zero() ? "expected exactly zero" : "zero";
    return;
  }
  j.deviation = deviation_of(*j.measured, *j.expected, criteria);
  const bool fails = j.deviation > thresholds.failure;
  // Sizes are off from a line whose slope is.
  const bool off = j.outlier && j.outlier->deviation > thresholds.failure;
  if (!off || (fails && j.outlier->layer.empty())) j.outlier.reset();
  if (j.outlier) {
    j.verdict = Verdict::fail;
    j.reason = to_string(*j.outlier);
    return;
  }
  if (j.deviation <= thresholds.doubt) {
    j.verdict = Verdict::pass;
    return;
  }
  if (!fails) {
    j.reason = fmt::format(
        "deviates by {:.1f} standard errors; more seeds and a larger size are needed to decide",
        j.deviation);
    return;
  }
  const double away = distance(j.measured->slope, band);
  const double still = distance(j.measured->last, band);
  if (j.expected->regime != Regime::exact && away * still <= 0) {
    j.reason = "bends towards the prediction; a larger size is needed to decide";
    return;
  }
  j.verdict = Verdict::fail;
  j.reason = "expected " + band_text(band);
}

}  // namespace scalewise::check
