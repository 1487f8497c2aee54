// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/check/band.hpp"
#include "scalewise/check/expectation.hpp"
#include "scalewise/check/growth.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/size_curve.hpp"
#include "scalewise/numeric/quantile.hpp"

namespace scalewise::check {

/// A size, or a layer of one, at which an exact quantity is not as at all others: a slope over all sizes has it as
/// scatter, and the mean over all layers hides it.
struct Outlier {
  std::string layer;  // the name of its tensor; empty where a whole size is off
  long size = 0;
  double factor = 1;     // over the median of the others
  double deviation = 0;  // of log(factor) beyond the margin, as a standard normal deviate
};

/// "4 times the others' at size 128", "0.25 times the others' in layer.5.mlp_down of size 64".
inline std::string to_string(const Outlier& outlier) {
  return outlier.layer.empty()
             ? fmt::format("{:.3g} times the others' at size {}", outlier.factor, outlier.size)
             : fmt::format("{:.3g} times the others' in {} of size {}", outlier.factor,
                           outlier.layer, outlier.size);
}

namespace detail {

/// Several runs of one size, or of one layer.
/// Units:    logarithms of what was measured over what is expected
struct LogGroup {
  std::string layer;
  long size = 0;
  std::vector<double> logs;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The group whose mean is farthest from the median of all.
/// Equation: (|mean - median| - margin) / (s √(1/n + 1/Σ n of the others)), s² within the groups
/// None with fewer than three groups, or one run of each.
inline std::optional<Outlier> farthest(const std::vector<LogGroup>& groups, double margin) {
  if (groups.size() < 3) return {};
  std::vector<double> means;
  double squares = 0, runs = 0;
  for (const LogGroup& group : groups) {
    double mean = 0;
    for (const double x : group.logs) mean += x / static_cast<double>(group.logs.size());
    for (const double x : group.logs) squares += (x - mean) * (x - mean);
    means.push_back(mean);
    runs += static_cast<double>(group.logs.size());
  }
  const double degrees = runs - static_cast<double>(groups.size());
  if (degrees < 1) return {};
  const double variance = (std::max)(squares / degrees, least_variance);
  const double middle = median(means);
  std::optional<Outlier> found;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto n = static_cast<double>(groups[i].logs.size());
    const double away = std::abs(means[i] - middle) - margin;
    const double error = std::sqrt(variance * (1 / n + 1 / (runs - n)));
    const double deviation = away > 0 ? numeric::normal_deviate(away / error, degrees) : 0;
    if (deviation > (found ? found->deviation : 0))
      found = Outlier{groups[i].layer, groups[i].size, std::exp(means[i] - middle), deviation};
  }
  return found;
}

/// What a plan says of the size of a tensor's entries, or of its first update, up to a factor that all layers have;
/// 0 where that is no single number.
inline double planned_number(const Plan& plan, const Quantity& quantity) {
  const auto entry = std::find_if(plan.entries.begin(), plan.entries.end(),
                                  [&](const Entry& e) { return e.name == quantity.name; });
  if (entry == plan.entries.end()) return 0;
  if (quantity.signal == Signal::update) return entry->learning_rate.value;
  const double mean = std::abs(entry->init_mean.value);
  const double deviation = std::sqrt(entry->init_variance.value);
  return mean > 0 && deviation > 0 ? 0 : mean + deviation;
}

}  // namespace detail

/// The size whose mean lies farthest from a line.
/// Equation: r = log(root mean square) - slope log(size), the slope in the band that is nearest to the measured one
inline std::optional<Outlier> outlying_size(const SizeCurve& curve, double slope, const Band& band,
                                            double margin) {
  const double expected = (std::clamp)(slope, band.low, band.high);
  std::map<long, detail::LogGroup> groups;
  for (const SizeRun& run : curve.logs) {
    detail::LogGroup& group = groups[run.size];
    group.size = run.size;
    group.logs.push_back(run.log - expected * std::log(static_cast<double>(run.size)));
  }
  std::vector<detail::LogGroup> all;
  for (auto& [size, group] : groups) all.push_back(std::move(group));
  return detail::farthest(all, margin);
}

/// For the initial parameters and the updates of a step: the layer that lies farthest from what its plan says of it,
/// compared with the other layers of its size.
/// `records`: with their layers; `measure`: of each run's moments.
/// Requires: every recorded size has a member.
inline std::optional<Outlier> outlying_layer(const Records& records,
                                             const std::vector<Member>& family,
                                             const Quantity& place, long step,
                                             double (Moments::*measure)() const, double margin) {
  std::map<long, std::map<std::string, detail::LogGroup>> sizes;
  for (const auto& [quantity, steps] : records.all()) {
    if (quantity.signal != place.signal || quantity.name == place.name) continue;
    const auto runs = place_of(quantity.name) == place.name ? steps.find(step) : steps.end();
    if (runs == steps.end()) continue;
    const Member* member = nullptr;  // of the size of the last run
    double planned = 0;
    for (const auto& [run, moments] : runs->second) {
      if (member == nullptr || member->size != run.size) {
        member = detail::member_of(family, run.size);
        planned = detail::planned_number(member->plan, quantity);
      }
      const double value = (moments.*measure)();
      if (!(planned > 0) || !(value > 0) || !std::isfinite(value)) continue;
      detail::LogGroup& layer = sizes[run.size][quantity.name];
      layer.layer = quantity.name;
      layer.size = run.size;
      layer.logs.push_back(std::log(value / planned));
    }
  }
  std::optional<Outlier> found;
  for (auto& [size, layers] : sizes) {
    std::vector<detail::LogGroup> all;
    for (auto& [name, layer] : layers) all.push_back(std::move(layer));
    std::optional<Outlier> one = detail::farthest(all, margin);
    if (one && (!found || one->deviation > found->deviation)) found = std::move(one);
  }
  return found;
}

}  // namespace scalewise::check
