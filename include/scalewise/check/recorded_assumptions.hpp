// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/judgeable.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/slopes_state.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::check {

namespace detail {

/// The root mean square of a quantity at the smallest size that has it; none where it was not recorded,
/// or sums were not counted.
inline std::optional<double> smallest_rms(const Records& records, Signal signal,
                                          std::string_view name, long step) {
  const Records::Runs* runs = records.find({signal, std::string(name)}, step);
  if (runs == nullptr || runs->empty()) return {};
  const long size = runs->begin()->first.size;
  Moments all;
  for (const auto& [run, moments] : *runs) {
    if (run.size != size) continue;
    if (moments.count <= 1) return {};
    all += moments;
  }
  return all.rms();
}

/// Whether the first step that moves something changes the final hidden state by more than its size.
inline bool begins_with_large_steps(const Records& records, const Judgeable& judgeable) {
  constexpr std::string_view name = architecture::observable("final_hidden");
  long first = 1;
  while (judgeable.idle.contains(first)) ++first;
  const auto value = smallest_rms(records, Signal::value, name, 0);
  const auto change = smallest_rms(records, Signal::change, name, first);
  return value && change && *change > *value;
}

/// Whether the logits of the smallest models begin so large that their softmax is far from flat. What
/// it leaves of each gradient, p - y, then depends on the size of the logits.
/// Equation: of V normal logits with the root mean square s, Σ p² = exp(s²)/V: above a fifth, which is
///           no longer small compared with Σ y² = 1
inline bool begins_sharp(const Records& records, const Plan& smallest) {
  const auto rms = smallest_rms(records, Signal::value, architecture::observable("logits"), 0);
  return rms && std::exp(*rms * *rms) > static_cast<double>(outputs(smallest.shape)) / 5;
}

}  // namespace detail

/// The assumptions with what records say of the size of logits and of the first step.
inline Assumptions as_recorded(Assumptions assumptions, const Records& records, const Plan& plan,
                               const Judgeable& judgeable) {
  assumptions.sharp_softmax = assumptions.sharp_softmax || detail::begins_sharp(records, plan);
  assumptions.per_logits =
      records.find({Signal::gradient, std::string(architecture::observable("logits"))}, 0) !=
      nullptr;
  assumptions.large_steps =
      assumptions.large_steps || detail::begins_with_large_steps(records, judgeable);
  return assumptions;
}

}  // namespace scalewise::check
