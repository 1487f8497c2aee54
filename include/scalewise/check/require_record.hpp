// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "scalewise/check/moments.hpp"
#include "scalewise/check/quantity.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/name.hpp"

namespace scalewise::check::detail {

/// Whether there are n numbers with these sums, up to rounding. Sums that are not finite are those of
/// a run that diverged, and say nothing.
/// Equation: Σx² <= (Σ|x|)² <= n Σx²
/// Accuracy: 1 % for sums that were rounded to bfloat16, by 2^-9 each, and x² as well: 4 · 2^-9 in all.
///           Sums in float32, one number after the other, are off by n 2^-24 of themselves each at most, which
///           counts three times on the right, and at 2^24 numbers of one size they stop growing; a factor
///           of 4 has room for that. Each x² may have lost 2^-126, below which float32 underflows.
inline bool has_possible_sums(const Moments& m) {
  if (m.count == 0) return m.sum_abs == 0 && m.sum_squares == 0;
  if (!std::isfinite(m.sum_abs) || !std::isfinite(m.sum_squares)) return true;
  constexpr double rounded = 1.01;
  const auto n = static_cast<double>(m.count);
  const double summed = rounded + 3 * (std::min)(1.0, n * 0x1p-24);
  return std::sqrt(m.sum_squares) <= std::sqrt(rounded) * m.sum_abs &&
         m.sum_abs <= std::sqrt(summed * n) * std::sqrt(m.sum_squares + n * 0x1p-126);
}

/// Throws:   InvalidInput where no numbers have these sums.
inline void require_possible_sums(const std::string& place, const Quantity& quantity,
                                  const Moments& m) {
  if (has_possible_sums(m)) return;
  throw InvalidInput(
      fmt::format("{}, {} of {}", place, word(signal_words, quantity.signal),
                  messages::printable(quantity.name)),
      fmt::format("sum_abs {:g}, sum_squares {:g}, count {}", m.sum_abs, m.sum_squares, m.count),
      m.count == 0 ? "a count of at least 1, unless both sums are 0"
                   : "sum_squares <= sum_abs^2 <= count * sum_squares, as for any numbers",
      "sum_abs and sum_squares are sums over all entries, not means or roots");
}

}  // namespace scalewise::check::detail
