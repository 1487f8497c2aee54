// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace scalewise::check {

/// The sums from which the size of a tensor's entries is read. Those of parts add up, so ranks,
/// batches and layers can each keep their own.
/// Equation: Σ|x|, Σx², and how many entries
/// Accuracy: sums in double, in the order of the entries.
struct Moments {
  double sum_abs = 0;
  double sum_squares = 0;
  std::uint64_t count = 0;

  template <class Scalar>
  void add(const Scalar* data, std::size_t size) {
    constexpr std::size_t chunk = 256;  // short sums in one go, which compilers vectorize
    for (std::size_t begin = 0; begin < size; begin += chunk) {
      const std::size_t end = begin + chunk < size ? begin + chunk : size;
      double abs = 0;
      double squares = 0;
      for (std::size_t i = begin; i < end; ++i) {
        const auto x = static_cast<double>(data[i]);
        abs += x < 0 ? -x : x;
        squares += x * x;
      }
      sum_abs += abs;
      sum_squares += squares;
    }
    count += size;
  }

  Moments& operator+=(const Moments& other) {
    sum_abs += other.sum_abs;
    sum_squares += other.sum_squares;
    count += other.count;
    return *this;
  }

  double mean_abs() const { return count == 0 ? 0 : sum_abs / static_cast<double>(count); }
  double rms() const { return count == 0 ? 0 : std::sqrt(sum_squares / static_cast<double>(count)); }

  friend bool operator==(const Moments&, const Moments&) = default;
};

}  // namespace scalewise::check
