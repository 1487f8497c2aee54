// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/check/unknown_name.hpp"

namespace scalewise::check::detail {

/// Quantities at a step that some runs lack, though others recorded them.
struct UnevenRecords {
  std::vector<std::string> sizes;  // that no run of a size has
  std::vector<std::string> runs;   // that other runs of the size have
};

/// Compares what runs have recorded. A tensor that only some models have need not be recorded of the others.
/// Requires: pooled layers, as models may differ in depth.
inline UnevenRecords uneven_records(const Records& records, const std::vector<Member>& family) {
  const std::set<Run> all = records.runs();
  const Plan& first = family.front().plan;
  UnevenRecords found;
  for (const auto& [quantity, steps] : records.all()) {
    if (!unknown_name(quantity, first).reason.empty()) continue;
    std::set<long> without;  // sizes whose models lack the tensor
    for (const Member& member : family) {
      if (entry_of(first, quantity.name) && !entry_of(member.plan, quantity.name))
        without.insert(member.size);
    }
    for (const auto& [step, runs] : steps) {
      std::set<long> recorded, named;
      for (const auto& [run, moments] : runs) recorded.insert(run.size);
      const std::string what = fmt::format("{} ({}) at step {} of size", quantity.name,
                                           word(signal_words, quantity.signal), step);
      for (const Run& run : all) {
        if (runs.contains(run) || without.contains(run.size)) continue;
        if (recorded.contains(run.size)) {
          found.runs.push_back(fmt::format("{} {}, seed {}", what, run.size, run.seed));
        } else if (named.insert(run.size).second) {
          found.sizes.push_back(fmt::format("{} {}", what, run.size));
        }
      }
    }
  }
  return found;
}

}  // namespace scalewise::check::detail
