// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/architecture/observables.hpp"
#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/plan/plan.hpp"

// The layers of a place are judged together, as one quantity: what that would hide is looked for here.

namespace scalewise::check::detail {

/// How many entries the tensor of a name has in a plan, or those of a place, all layers together.
inline std::uint64_t entries_of(const Plan& plan, const std::string& name) {
  std::uint64_t count = 0;
  for (const Entry& entry : plan.entries) {
    if (entry.name == name || place_of(plan.shape, entry.name) == name)
      count += static_cast<std::uint64_t>(entry.rows) * static_cast<std::uint64_t>(entry.columns);
  }
  return count;
}

/// "layer.0.", … of a model.
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

/// A name with a layer that its model does not have; empty where there is none.
/// Requires: every recorded size has a member.
inline std::string layers_beyond(const Records& records, const std::vector<Member>& family) {
  if (family.front().plan.shape.blocks == Blocks::listed) return {};
  std::map<long, std::set<std::string>> layers;  // by size
  for (const Member& member : family) {
    for (const Entry& entry : member.plan.entries)
      layers[member.size].insert(architecture::tensor_name(entry.name).prefix());
  }
  for (const auto& [quantity, steps] : records.all()) {
    const architecture::TensorName name = architecture::tensor_name(quantity.name);
    if (name.layer < 0) continue;
    for (const auto& [run, moments] : steps.begin()->second) {
      if (layers[run.size].contains(name.prefix())) continue;
      return fmt::format(
          "plans of the models that were recorded: {} ({}) at size {}, whose plan has no such "
          "layer",
          quantity.name, word(signal_words, quantity.signal), run.size);
    }
  }
  return {};
}

/// A line for tensors of which only a part was recorded; empty where there are none.
/// Requires: every recorded size has a member.
inline std::string partial_tensors(const Records& records, const std::vector<Member>& family) {
  std::vector<std::string> partial;
  for (const auto& [quantity, steps] : records.all()) {
    if (is_activation(quantity.signal)) continue;
    const auto& [run, moments] = *steps.begin()->second.begin();
    const std::uint64_t planned = entries_of(member_of(family, run.size)->plan, quantity.name);
    if (moments.count > 1 && moments.count < planned) {
      partial.push_back(fmt::format(
          "{} ({}): {:.3g} % of its entries", quantity.name, word(signal_words, quantity.signal),
          100.0 * static_cast<double>(moments.count) / static_cast<double>(planned)));
    }
  }
  return partial.empty() ? "" : scalewise::detail::up_to_three(partial) + " were recorded";
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
