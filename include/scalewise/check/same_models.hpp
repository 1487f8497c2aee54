// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Signs that models of several sizes are one and the same.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "scalewise/architecture/observables.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"

namespace scalewise::check::detail {

/// Neighbours whose plans are those of one size; empty where there are none.
inline std::string same_plans(const std::vector<Member>& family) {
  const auto same = [](const Member& one, const Member& next) {
    const Shape &a = one.plan.shape, &b = next.plan.shape;
    if (a.d_model != b.d_model || a.depth != b.depth || a.experts != b.experts) return false;
    // The shape of a list does not say how many experts there are.
    return a.blocks != Blocks::listed ||
           std::equal(one.plan.entries.begin(), one.plan.entries.end(), next.plan.entries.begin(),
                      next.plan.entries.end(), [](const Entry& x, const Entry& y) {
                        return x.rows == y.rows && x.columns == y.columns;
                      });
  };
  const auto found = std::adjacent_find(family.begin(), family.end(), same);
  if (found == family.end()) return {};
  return fmt::format("the plans of size {} and {} have the same width, depth and experts",
                     found->size, std::next(found)->size);
}

/// Runs of two sizes that begin with the same numbers, to the last bit; empty where there are none.
inline std::string same_numbers(const Records& records) {
  std::map<Run, std::map<Quantity, Moments>> starts;
  for (const auto& [quantity, steps] : records.all()) {
    if (steps.begin()->first != 0) continue;
    for (const auto& [run, moments] : steps.begin()->second) {
      if (moments.sum_squares > 0 && moments.count > 1) starts[run][quantity] = moments;
    }
  }
  for (auto a = starts.begin(); a != starts.end(); ++a) {
    for (auto b = std::next(a); b != starts.end(); ++b) {
      if (a->first.size == b->first.size || !(a->second == b->second)) continue;
      return fmt::format("size {} (seed {}) begins with the numbers of size {} (seed {})",
                         b->first.size, b->first.seed, a->first.size, a->first.seed);
    }
  }
  return {};
}

/// An activation along the width with as many entries at all widths; empty where there is none.
/// Requires: pooled layers.
inline std::string same_activations(const Records& pooled, const std::vector<Member>& family) {
  if (family.front().plan.shape.d_model == family.back().plan.shape.d_model) return {};
  for (const auto& [quantity, steps] : pooled.all()) {
    const bool wide = quantity.signal == Signal::value &&
                      quantity.name != architecture::observable("logits") &&
                      quantity.name != architecture::observable("attention.scores") &&
                      quantity.name != architecture::observable("mlp.router") &&
                      quantity.name != architecture::observable("attention.probabilities");
    if (!wide || !architecture::is_observable(quantity.name)) continue;
    const Records::Runs& runs = steps.begin()->second;
    const std::uint64_t count = runs.begin()->second.count;
    const long size = runs.begin()->first.size;
    if (count <= 1 || runs.rbegin()->first.size == size) continue;
    const bool all = std::all_of(runs.begin(), runs.end(),
                                 [&](const auto& one) { return one.second.count == count; });
    if (!all) continue;
    return fmt::format("{} has {} entries at size {} and at size {}", quantity.name, count, size,
                       runs.rbegin()->first.size);
  }
  return {};
}

}  // namespace scalewise::check::detail
