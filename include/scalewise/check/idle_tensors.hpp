// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::check::detail {

/// Tensors of a list that no recorded step of any run moves, though the plan has a rate for them.
inline std::vector<std::string> still_tensors(const Records& records, const Plan& plan) {
  std::vector<std::string> still;
  for (const Entry& entry : plan.entries) {
    const auto steps = records.all().find({Signal::update, entry.name});
    if (steps == records.all().end() || entry.learning_rate.value == 0) continue;
    const auto moves = [](const auto& run) { return run.second.sum_squares != 0; };
    const bool any = std::any_of(steps->second.begin(), steps->second.end(), [&](const auto& step) {
      return std::any_of(step.second.begin(), step.second.end(), moves);
    });
    if (!any) still.push_back(entry.name);
  }
  return still;
}

/// The experts of a list that are tensors of their own, or side by side.
inline std::set<std::string> experts_of(const Plan& plan) {
  std::set<std::string> experts;
  for (const Entry& entry : plan.entries) {
    if (entry.group == Group::expert_up || entry.group == Group::expert_down)
      experts.insert(entry.name);
  }
  return experts;
}

/// The records without gradients and updates that are exactly zero of an expert of a list, where other runs of the size
/// have some: no token of the batch chose it.
inline Records without_idle_experts(const Records& records, const Plan& plan) {
  const std::set<std::string> experts = experts_of(plan);
  if (experts.empty()) return records;
  std::set<std::tuple<Quantity, long, long>> moved;  // at a step of a size
  records.for_each(
      [&](const Quantity& quantity, long step, const Run& run, const Moments& moments) {
        if (moments.sum_squares != 0) moved.emplace(quantity, step, run.size);
      });
  Records kept;
  records.for_each([&](const Quantity& quantity, long step, const Run& run,
                       const Moments& moments) {
    const bool by_token = quantity.signal == Signal::gradient || quantity.signal == Signal::update;
    const bool idle = by_token && moments.sum_squares == 0 && experts.contains(quantity.name) &&
                      moved.contains({quantity, step, run.size});
    if (!idle) kept.add(quantity, step, run, moments);
  });
  for (const auto& [run, fingerprint] : records.plans()) kept.set_plan(run, fingerprint);
  return kept;
}

/// Tensors of a list whose gradient is rounding in every run: that of a key's bias cancels in the softmax. Adam's
/// steps on it depend on epsilon, and say nothing of the rate.
/// Equation: gradient at step 0 below 1e-5 of the median over tensors, in root mean squares, and not zero
/// Measured: in float, 6e-9 to 2e-8 of it for key biases in two stacks, a ViT, a DiT and two towers, and above 1e-3 for all
///           other tensors
inline std::set<std::string> rounding_tensors(const Records& records, const Plan& plan) {
  std::map<Run, std::map<std::string, double>> gradients;
  for (const Entry& entry : plan.entries) {
    const Records::Runs* runs = records.find({Signal::gradient, entry.name}, 0);
    if (runs == nullptr) continue;
    for (const auto& [run, moments] : *runs) gradients[run][entry.name] = moments.rms();
  }
  std::map<std::string, std::size_t> rounding;  // in how many runs
  for (const auto& [run, all] : gradients) {
    std::vector<double> sizes;
    for (const auto& [name, size] : all) sizes.push_back(size);
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    for (const auto& [name, size] : all)
      if (size > 0 && size < 1e-5 * *middle) ++rounding[name];
  }
  std::set<std::string> names;
  for (const auto& [name, runs] : rounding)
    if (runs == gradients.size()) names.insert(name);
  return names;
}

}  // namespace scalewise::check::detail
