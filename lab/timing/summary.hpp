// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#pragma once

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace scalewise::benchmark {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The value below which the share q of a sorted list lies, linear between neighbours.
inline double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// Median and spread.
/// Requires: at least one value.
inline nlohmann::ordered_json summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"median", quantile(values, 0.5)},
          {"lower_quartile", quantile(values, 0.25)},
          {"upper_quartile", quantile(values, 0.75)},
          {"smallest", values.front()},
          {"largest", values.back()}};
}

}  // namespace scalewise::benchmark
