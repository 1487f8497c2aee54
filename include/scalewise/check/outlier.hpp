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

#include "scalewise/check/growth.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/size_curve.hpp"
#include "scalewise/numeric/quantile.hpp"

namespace scalewise::check {

/// A size, or a layer of one, at which an exact quantity is not as at all others: a slope over all sizes mistakes that for
/// scatter, and the mean over all layers hides it.
struct Outlier {
  std::string layer;  // the name of its tensor; empty where a whole size is off
  long size = 0;
  double factor = 1;     // over the median of all
  double deviation = 0;  // of log(factor) beyond the margin, a standard normal deviate
};

/// "4 times as large at size 128 as at the others", "0.25 times as large in layer.5.mlp_down of size 64 as in the others".
inline std::string to_string(const Outlier& outlier) {
  return outlier.layer.empty()
             ? fmt::format("{:.3g} times as large at size {} as at the others", outlier.factor,
                           outlier.size)
             : fmt::format("{:.3g} times as large in {} of size {} as in the others",
                           outlier.factor, outlier.layer, outlier.size);
}

namespace detail {

/// Several runs of one size, or of one layer.
/// Units:    logarithms of what was measured over what is expected
struct LogGroup {
  std::string layer;
  long size = 0;
  std::vector<double> logs;

  double mean() const {
    double sum = 0;
    for (const double x : logs) sum += x;
    return sum / static_cast<double>(logs.size());
  }
  /// Σ (x - mean)².
  double squares() const {
    double sum = 0;
    for (const double x : logs) sum += (x - mean()) * (x - mean());
    return sum;
  }
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The deviate of a normal variable that is as rare as the largest of some that are as rare as another.
/// Units:    standard normal deviates
inline double of_several(double deviation, double number) {
  const double rare = number * std::erfc(deviation / std::sqrt(2.0)) / 2;
  if (!(rare > 1e-300)) return deviation;  // beyond doubt
  return rare >= 0.5 ? 0 : numeric::normal_upper_quantile(rare);
}

/// The group whose mean is farthest from the median of all, or, of two, from the one that is closer to its plan.
/// Equation: (|mean - median| - margin) / √(s² (1/n + π/2 / Σ n of the others)), s² within the groups, or within this one
///           where that is more, times `terms`: the means that were subtracted; as rare as the largest of `number`
/// None with one group, or one run of each.
inline std::optional<Outlier> farthest(const std::vector<LogGroup>& groups, double margin,
                                       double number, double terms) {
  if (groups.size() < 2) return {};
  std::vector<double> means;
  double squares = 0, runs = 0;
  for (const LogGroup& group : groups) {
    means.push_back(group.mean());
    squares += group.squares();
    runs += static_cast<double>(group.logs.size());
  }
  const double degrees = runs - static_cast<double>(groups.size());
  if (degrees < 1) return {};
  const bool first_is_closer = std::abs(means.front()) < std::abs(means.back());
  const double middle = means.size() > 2 ? median(means) : means[first_is_closer ? 0 : 1];
  std::optional<Outlier> found;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto n = static_cast<double>(groups[i].logs.size());
    const double own = n > 1 ? groups[i].squares() / (n - 1) : 0;
    const double variance = (std::max)({squares / degrees, own, least_variance});
    const double away = std::abs(means[i] - middle) - margin;
    const double error = std::sqrt(terms * variance * (1 / n + 1.570796 / (runs - n)));
    const double deviation =
        away > 0 ? of_several(numeric::normal_deviate(away / error, degrees), number) : 0;
    if (deviation > (found ? found->deviation : 0))
      found = Outlier{groups[i].layer, groups[i].size, std::exp(means[i] - middle), deviation};
  }
  return found;
}

/// The planned size of the entries of the tensors of a name, with or without the layer, or of their first
/// update: the root of the mean square of those that have one. Up to a factor that is the same at all sizes.
inline double planned_number(const Plan& plan, const Quantity& quantity) {
  const bool all_layers = place_of(plan.shape, quantity.name) == quantity.name;
  double squares = 0, entries = 0;
  for (const Entry& entry : plan.entries) {
    if ((all_layers ? place_of(plan.shape, entry.name) : entry.name) != quantity.name) continue;
    const double number = quantity.signal == Signal::update ? entry.learning_rate.value
                          : entry.init_mean.value == 0      ? std::sqrt(entry.init_variance.value)
                          : entry.init_variance.value == 0  ? entry.init_mean.value
                                                            : 0;
    const double count = static_cast<double>(entry.rows) * static_cast<double>(entry.columns);
    squares += number * number * count;
    entries += number == 0 ? 0 : count;
  }
  return entries == 0 ? 0 : std::sqrt(squares / entries);
}

}  // namespace detail

/// The size whose mean lies farthest from its plan.
/// Equation: r = log(root mean square) - log(planned)
/// Requires: every size has a member.
inline std::optional<Outlier> outlying_size(const SizeCurve& curve,
                                            const std::vector<Member>& family, double margin) {
  std::vector<detail::LogGroup> groups;
  double planned = 0;
  for (const SizeRun& run : curve.logs) {  // by size
    if (groups.empty() || groups.back().size != run.size) {
      planned = detail::planned_number(detail::member_of(family, run.size)->plan, curve.quantity);
      if (planned == 0) return {};
      groups.push_back({"", run.size, {}});
    }
    groups.back().logs.push_back(run.log - std::log(std::abs(planned)));
  }
  return detail::farthest(groups, margin, static_cast<double>(groups.size()), 1);
}

/// For the initial parameters and the updates of a step: the layer that lies farthest from what its plan says of it,
/// compared with the other layers of its size, and with the smallest size that has it: a factor that a layer has at all
/// sizes is not a mistake of the scaling. Of two layers, the one that changes more from the smallest size on.
/// `records`: with their layers; `measure`: of a layer's name and a run's moments.
/// Requires: every recorded size has a member.
template <class Measured>
std::optional<Outlier> outlying_layer(const Records& records, const std::vector<Member>& family,
                                      const Quantity& place, long step, const Measured& measure,
                                      double margin) {
  const Shape& shape = family.front().plan.shape;
  std::map<long, std::map<std::string, detail::LogGroup>> sizes;
  double number = 0;
  for (const auto& [quantity, steps] : records.all()) {
    if (quantity.signal != place.signal || quantity.name == place.name) continue;
    const auto runs = place_of(shape, quantity.name) == place.name ? steps.find(step) : steps.end();
    if (runs == steps.end()) continue;
    for (const auto& [run, moments] : runs->second) {
      detail::LogGroup& layer = sizes[run.size][quantity.name];
      if (layer.size == 0) {
        ++number;
        layer = {quantity.name, run.size, {}};
      }
      layer.logs.push_back(measure(quantity.name, run, moments));
    }
  }
  const bool pairs = std::all_of(sizes.begin(), sizes.end(),
                                 [](const auto& size) { return size.second.size() == 2; });
  std::map<std::string, double> first;  // of each layer: its mean at the smallest size
  std::optional<Outlier> found;
  for (auto& [size, layers] : sizes) {
    const Plan& plan = detail::member_of(family, size)->plan;
    std::vector<detail::LogGroup> all;
    std::vector<double> means;
    for (auto& [name, layer] : layers) {
      const double planned = detail::planned_number(plan, {place.signal, name});
      const auto usable = [&](double x) { return x > 0 && std::isfinite(x); };
      const auto zero = [](double x) { return x == 0; };
      if (planned > 0 && place.signal == Signal::parameter &&
          std::all_of(layer.logs.begin(), layer.logs.end(), zero))
        return Outlier{name, size, 0, HUGE_VAL};
      if (!(planned > 0) || !std::all_of(layer.logs.begin(), layer.logs.end(), usable)) continue;
      for (double& x : layer.logs) x = std::log(x / planned);
      means.push_back(layer.mean());
      all.push_back(std::move(layer));
    }
    if (all.empty()) continue;
    const double middle = pairs ? 0 : detail::median(means);
    for (detail::LogGroup& layer : all) {
      const double start = first.try_emplace(layer.layer, layer.mean() - middle).first->second;
      for (double& x : layer.logs) x -= start;
    }
    std::optional<Outlier> one = detail::farthest(all, margin, number, 2);
    if (one && (!found || one->deviation > found->deviation)) found = std::move(one);
  }
  return found;
}

}  // namespace scalewise::check
