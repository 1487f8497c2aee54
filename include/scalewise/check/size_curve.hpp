// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// Runs of one size.
/// Units:    natural logarithms of root mean squares
struct SizePoint {
  long size = 0;
  double mean = 0;
  double squares = 0;  // Σ (x - mean)²
  std::size_t runs = 0;

  /// Standard deviation of the runs; 0 of a single one.
  double deviation() const {
    return runs < 2 ? 0 : std::sqrt(squares / static_cast<double>(runs - 1));
  }
};

/// One run.
struct SizeRun {
  long size = 0;
  std::uint64_t seed = 0;
  double log = 0;  // of the root mean square
};

/// One quantity at one step against the size.
struct SizeCurve {
  Quantity quantity;
  long step = 0;
  std::vector<SizeRun> logs;      // by size; without runs that are exactly zero
  std::vector<SizePoint> points;  // smallest size first; without runs that are exactly zero
  std::size_t runs = 0;
  std::size_t zeros = 0;       // runs in which all entries are exactly zero
  std::size_t zero_sizes = 0;  // sizes in whose runs all entries are
  bool finite = true;

  bool is_zero() const { return zeros == runs; }
  /// Runs beyond the first of each size.
  std::size_t degrees() const {
    std::size_t sum = 0;
    for (const SizePoint& point : points) sum += point.runs - 1;
    return sum;
  }
};

/// The curve of what was recorded. `of`: what of each run's moments; `divisor`, if there is one: other
/// runs, through whose root mean squares it is divided.
/// Throws:   InvalidInput for a size that is not positive.
inline SizeCurve curve_of(const Quantity& quantity, long step, const Records::Runs& runs,
                          double (Moments::*of)() const = &Moments::rms,
                          const Records::Runs* divisor = nullptr) {
  SizeCurve curve;
  curve.quantity = quantity;
  curve.step = step;
  std::set<long> sizes;
  for (const auto& [run, moments] : runs) {
    if (run.size < 1) {
      throw InvalidInput("size of " + messages::printable(quantity.name), std::to_string(run.size),
                         "a positive size");
    }
    double rms = (moments.*of)();
    if (divisor != nullptr) {
      const auto other = divisor->find(run);
      if (other == divisor->end()) continue;
      const double by = other->second.rms();
      rms = rms == 0 && by == 0 ? 0 : rms / by;
    }
    ++curve.runs;
    sizes.insert(run.size);
    if (rms == 0) {
      ++curve.zeros;
    } else if (std::isfinite(rms) && std::isfinite(moments.sum_abs)) {
      curve.logs.push_back({run.size, run.seed, std::log(rms)});
    } else {
      curve.finite = false;
    }
  }
  std::map<long, std::vector<double>> by_size;
  for (const SizeRun& run : curve.logs) by_size[run.size].push_back(run.log);
  for (const auto& [size, all] : by_size) {
    SizePoint point{size, 0, 0, all.size()};
    for (const double x : all) point.mean += x / static_cast<double>(all.size());
    for (const double x : all) point.squares += (x - point.mean) * (x - point.mean);
    curve.points.push_back(point);
  }
  if (curve.finite) curve.zero_sizes = sizes.size() - curve.points.size();
  return curve;
}

}  // namespace scalewise::check
