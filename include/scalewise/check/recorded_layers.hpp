// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/plan/plan.hpp"

// The layers of a place are judged together, as one quantity: what that would hide is looked for here.

namespace scalewise::check::detail {

/// "layer.0.", … of the smallest model.
inline std::vector<std::string> layer_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Entry& entry : plan::entries_of_shape(plan)) {
    if (entry.layer < 0) continue;
    const std::string layer = architecture::TensorName{entry.stack, entry.layer}.prefix();
    if (names.empty() || names.back() != layer) names.push_back(layer);
  }
  return names;
}

/// A line for blocks whose output was not recorded, though other activations of layers were.
inline std::vector<std::string> absent_outputs(const Records& records, const Plan& plan) {
  std::map<std::string, std::set<std::string>> recorded;  // by place, names with their layers
  for (const auto& [quantity, steps] : records.all()) {
    if (quantity.signal == Signal::value)
      recorded[place_of(plan.shape, quantity.name)].insert(quantity.name);
  }
  std::vector<std::string> lines;
  for (const std::string_view output :
       {architecture::observable("attention.output"), architecture::observable("mlp.output")}) {
    const std::string place(output);
    const std::set<std::string>& names = recorded[place];
    if (names.contains(place)) continue;  // all layers in one
    std::vector<std::string> absent;
    for (const std::string& layer : layer_names(plan)) {
      if (!names.contains(layer + place)) absent.push_back(layer + place);
    }
    if (absent.empty()) continue;
    constexpr std::size_t most = 3;
    const std::size_t more = absent.size() - (std::min)(absent.size(), most);
    absent.resize(absent.size() - more);
    if (names.empty()) absent = {"layer.*." + place};
    lines.push_back(
        fmt::format("{}{}, not recorded", fmt::join(absent, ", "),
                    names.empty() || more == 0 ? "" : fmt::format(" and {} more layers", more)));
  }
  return lines;
}

/// A line for tensors whose parameters, gradients or updates were not recorded, though those of other tensors or layers were;
/// empty where there are none. Parameters that the plan sets to zero need no record.
inline std::string absent_tensors(const Records& records, const Plan& plan) {
  std::map<Quantity, std::set<std::string>> recorded;  // by place, names with their layers
  std::set<Signal> signals;
  for (const auto& [quantity, steps] : records.all()) {
    if (is_activation(quantity.signal)) continue;
    recorded[{quantity.signal, place_of(plan.shape, quantity.name)}].insert(quantity.name);
    signals.insert(quantity.signal);
  }
  const std::span<const Entry> judged =
      plan.shape.blocks == Blocks::listed ? std::span(plan.entries) : plan::entries_of_shape(plan);
  std::vector<std::string> absent;
  for (const Signal signal : signals) {
    for (const Entry& entry : judged) {
      const std::string place = place_of(plan.shape, entry.name);
      const auto found = recorded.find({signal, place});
      const bool anywhere = found != recorded.end();
      if (anywhere && (found->second.contains(place) || found->second.contains(entry.name)))
        continue;  // in one for all layers, or by itself
      if (!anywhere && signal == Signal::parameter && entry.init_variance.value == 0) continue;
      std::string line =
          fmt::format("{} ({})", anywhere || place == entry.name ? entry.name : "layer.*." + place,
                      word(signal_words, signal));
      if (std::find(absent.begin(), absent.end(), line) == absent.end())
        absent.push_back(std::move(line));
    }
  }
  return absent.empty() ? "" : scalewise::detail::up_to_three(absent) + ", not recorded";
}

/// A layer that a run lacks though other runs have it at the same step; empty where there is none.
/// Requires: models of one depth.
inline std::string uneven_layers(const Records& records, const Shape& shape) {
  std::map<std::pair<Quantity, long>, std::map<Run, std::set<std::string>>> all;
  for (const auto& [quantity, steps] : records.all()) {
    const Quantity place{quantity.signal, place_of(shape, quantity.name)};
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) all[{place, step}][run].insert(quantity.name);
    }
  }
  for (const auto& [at, runs] : all) {
    std::set<std::string> names;
    for (const auto& [run, own] : runs) names.insert(own.begin(), own.end());
    for (const auto& [run, own] : runs) {
      for (const std::string& name : names) {
        if (own.contains(name)) continue;
        return fmt::format("{} ({}) at step {} of size {}, seed {}, as in other runs", name,
                           word(signal_words, at.first.signal), at.second, run.size, run.seed);
      }
    }
  }
  return {};
}

/// A tensor that no step of a run moves, though they move it in other layers; empty where there is none.
inline std::string still_layers(const Records& records, const Shape& shape) {
  std::map<std::pair<std::string, Run>, std::map<std::string, double>> all;
  records.for_each([&](const Quantity& quantity, long, const Run& run, const Moments& moments) {
    if (quantity.signal == Signal::update)
      all[{place_of(shape, quantity.name), run}][quantity.name] += moments.sum_squares;
  });
  for (const auto& [at, layers] : all) {
    const auto moves = [](const auto& layer) { return layer.second != 0; };
    const auto still = std::find_if_not(layers.begin(), layers.end(), moves);
    if (still == layers.end() || std::none_of(layers.begin(), layers.end(), moves)) continue;
    return fmt::format(
        "a step that moves {} at size {}: all its updates are exactly zero, and those of other "
        "layers are not",
        still->first, at.second.size);
  }
  return {};
}

}  // namespace scalewise::check::detail
