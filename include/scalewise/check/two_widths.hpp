// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "scalewise/check/records.hpp"

namespace scalewise::check {

/// The verdict of the usual criterion on the same records, to compare with ours.
struct TwoWidths {
  long smaller = 0, larger = 0;
  std::size_t modules = 0;  // activations at steps 1, 2 and 3
  std::size_t met = 0;
  std::string worst;  // the one whose ratio is furthest from 1
  long worst_step = 0;
  double worst_ratio = 1;
};

/// The criterion of microsoft/mup's own tests: mean |x| of every module at two widths within a
/// factor of 1.2, at steps 1 to 3.
/// Source:   github.com/microsoft/mup, mup/test/__main__.py
/// Differs:  widths are the smallest and the largest recorded; means over seeds.
inline TwoWidths two_widths(const Records& records) {
  TwoWidths result;
  for (const auto& [quantity, steps] : records.all()) {
    if (quantity.signal != Signal::value) continue;
    for (const auto& [step, runs] : steps) {
      if (step < 1 || step > 3 || runs.empty()) continue;
      const long smaller = runs.begin()->first.size;
      const long larger = runs.rbegin()->first.size;
      if (smaller == larger) continue;
      double low = 0;
      double high = 0;
      double lows = 0;
      double highs = 0;
      for (const auto& [run, moments] : runs) {
        if (run.size == smaller) {
          low += moments.mean_abs();
          ++lows;
        }
        if (run.size == larger) {
          high += moments.mean_abs();
          ++highs;
        }
      }
      result.smaller = smaller;
      result.larger = larger;
      ++result.modules;
      const double ratio = (high / highs) / (low / lows);
      const double away = (std::max)(ratio, 1 / ratio);
      if (away <= 1.2) ++result.met;
      if (away > (std::max)(result.worst_ratio, 1 / result.worst_ratio)) {
        result.worst = quantity.name;
        result.worst_step = step;
        result.worst_ratio = ratio;
      }
    }
  }
  return result;
}

}  // namespace scalewise::check
