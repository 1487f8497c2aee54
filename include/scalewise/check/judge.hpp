// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scalewise/check/prediction.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/line.hpp"

namespace scalewise::check {

/// One quantity at one step, measured and judged.
/// Units:    slopes of log(root mean square) against log(size)
struct Judgement {
  Quantity quantity;
  long step = 0;
  std::vector<double> sizes, values;  // one point per run; root mean squares over the tensor
  std::optional<Band> expected;       // none: recorded, not judged
  std::optional<Line> measured;       // none: zero, not finite, or too few sizes
  Verdict verdict = Verdict::inconclusive;
  std::string reason;  // of what did not pass
};

/// How far from its prediction a slope may lie, and how wide its interval may be.
struct Tolerance {
  // Corrections to the limit of large sizes bend curves by this much at sizes that train in minutes.
  double slope = 0.1;
  // Logits and gradients are sums over tokens too, whose correlation depends on the size.
  double sums = 0.2;
  // Mistakes move slopes by a half or more; an interval of half that length tells them apart.
  double error = 0.25;
  // What training adds may not grow faster, whatever the rule says. Rules that count on an alignment
  // of 3/4 let first steps, which are aligned almost fully, grow by a quarter.
  double growth = 0.25;

  double of(const Quantity& quantity) const {
    return quantity.name == "logits" || quantity.signal == Signal::gradient ? sums : slope;
  }
};

/// Along the depth, what the layers add takes over from the embedding, or the embedding from it, at
/// tens of layers, so that lengths and with them relative changes bend by up to half a power. A
/// branch multiplier that is missing or applied twice moves the stream by a whole one.
inline Tolerance along_depth(Tolerance tolerance) {
  tolerance.slope = tolerance.sums = 0.3;
  tolerance.growth = HUGE_VAL;
  return tolerance;
}

/// By how much the slope of an activation may differ after several steps because their updates add
/// up better at some sizes than at others.
/// Equation: between √k and k for k updates: ½ log k / log(largest size / smallest size)
inline double coherence(const Quantity& quantity, long step, double span) {
  const bool activation = quantity.signal == Signal::value || quantity.signal == Signal::change;
  return activation && step > 1 ? std::log(static_cast<double>(step)) / 2 / std::log(span) : 0;
}

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

namespace detail {

/// The group of a tensor by its name, with or without its layer.
inline std::optional<Group> group_of(const Plan& plan, const std::string& name) {
  for (const Entry& entry : plan.entries) {
    if (entry.name == name || role_name(entry.name) == name) return entry.group;
  }
  return {};
}

}  // namespace detail

/// What the prediction says of a quantity; none for what is not predicted. The gradient of a key's
/// bias is zero but for rounding, since softmax does not see it, and is passed over.
inline std::optional<Band> expected_slope(const Prediction& prediction, const Plan& plan,
                                          const Quantity& quantity, long step) {
  const std::string role = role_name(quantity.name);
  if (quantity.signal == Signal::value) return prediction.value(role, step);
  if (quantity.signal == Signal::change) return prediction.change(role, step);
  if (role.ends_with("key_bias")) return {};
  const std::optional<Group> group = detail::group_of(plan, quantity.name);
  if (!group) return {};
  if (quantity.signal == Signal::gradient) return prediction.gradient(*group, step);
  return prediction.update(*group, step);
}

/// Fits the slope of one quantity at one step.
/// Throws:   InvalidInput for a size that is not positive.
inline Judgement measure(const Quantity& quantity, long step, const Records::Runs& runs) {
  Judgement j;
  j.quantity = quantity;
  j.step = step;
  std::vector<double> x;
  std::vector<double> y;
  std::set<long> sizes;
  std::set<std::uint64_t> seeds;
  bool finite = true;
  for (const auto& [run, moments] : runs) {
    if (run.size < 1) {
      throw InvalidInput("size of " + printable(quantity.name), std::to_string(run.size),
                         "a positive size");
    }
    const double rms = moments.rms();
    j.sizes.push_back(static_cast<double>(run.size));
    j.values.push_back(rms);
    sizes.insert(run.size);
    seeds.insert(run.seed);
    finite = finite && std::isfinite(rms);
    if (rms == 0 || !std::isfinite(rms)) continue;
    x.push_back(std::log(static_cast<double>(run.size)));
    y.push_back(std::log(rms));
  }
  if (!finite) {
    j.verdict = Verdict::fail;
    j.reason = "not finite";
    return j;
  }
  constexpr std::size_t least_sizes = 3;
  constexpr std::size_t least_seeds = 2;
  constexpr long least_span = 8;
  if (sizes.size() < least_sizes || seeds.size() < least_seeds ||
      *sizes.rbegin() / least_span < *sizes.begin()) {
    j.reason = "needs 3 sizes, the largest 8 times the smallest, and 2 seeds";
    return j;
  }
  if (x.empty()) return j;  // zero everywhere
  if (x.size() < runs.size()) {
    j.verdict = Verdict::fail;
    j.reason = "zero in some runs only";
    return j;
  }
  j.measured = fit_line(x, y);
  return j;
}

/// Compares what was measured with what is expected. It passes when the interval of the slope meets
/// the band, widened by the tolerance, and is narrow enough; it fails when the interval is outside.
/// What training adds fails as well when it surely grows with the size, even where the rule itself
/// says so.
inline void judge(Judgement& j, const std::optional<Band>& expected, const Tolerance& tolerance) {
  j.expected = expected;
  if (!j.reason.empty() || !expected) return;
  const auto [smallest, largest] = std::minmax_element(j.sizes.begin(), j.sizes.end());
  const double allowed =
      tolerance.of(j.quantity) + coherence(j.quantity, j.step, *largest / *smallest);
  const auto fail = [&](const std::string& reason) {
    j.verdict = Verdict::fail;
    j.reason = reason;
  };
  if (!j.measured || expected->is_zero()) {
    if (!j.measured && expected->is_zero()) {
      j.verdict = Verdict::pass;
    } else {
      fail(expected->is_zero() ? "expected exactly zero" : "zero");
    }
    return;
  }
  const double low = j.measured->slope - j.measured->error;
  const double high = j.measured->slope + j.measured->error;
  if (j.quantity.signal == Signal::change && low > tolerance.growth) {
    fail("grows with the size");
  } else if (high < expected->low - allowed || low > expected->high + allowed) {
    fail("expected " + band_text(*expected));
  } else if (j.measured->error <= tolerance.error) {
    j.verdict = Verdict::pass;
  } else {
    j.reason = "the interval is too wide; more seeds or sizes would narrow it";
  }
}

}  // namespace scalewise::check
