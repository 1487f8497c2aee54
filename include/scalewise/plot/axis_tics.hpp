// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"

namespace scalewise::plot {

/// One mark of an axis.
struct Tic {
  double at = 0;
  std::string label;  // "2^{10}" stands for a raised 10; empty: a minor mark
};

/// A logarithmic axis: its ends, and at least two marks with labels between them.
struct LogAxis {
  double low = 0, high = 0;
  std::vector<Tic> tics;
};

namespace detail {

inline std::string six_digits(double x) { return fmt::format("{:.6g}", x); }

/// A step of 1, 2 or 5 times a power of ten that divides a span into at most five.
inline double round_step(double span) {
  const double rough = span / 5;
  const double ten = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / ten;
  return ten * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

/// The ends of an axis for values from `low` to `high`, so that no point lies on the frame.
inline LogAxis without_tics(double low, double high) {
  using Limits = std::numeric_limits<double>;
  low = (std::max)(low, (Limits::min)());
  high = (std::max)(high, (Limits::min)());
  if (high < 1.000001 * low) {
    low = (std::max)(low / 1.5, (Limits::min)());
    high = (std::min)(high * 1.5, (Limits::max)());
  }
  const double margin = std::exp(0.04 * (std::log(high) - std::log(low)));
  return {
      (std::max)(low / margin, (Limits::min)()), (std::min)(high * margin, (Limits::max)()), {}};
}

/// Multiples of a round step.
inline std::vector<Tic> even_tics(const LogAxis& axis) {
  std::vector<Tic> tics;
  const double step = round_step(axis.high - axis.low);
  for (double k = std::ceil(axis.low / step); k * step <= axis.high; ++k) {
    tics.push_back({k * step, six_digits(k * step)});
  }
  return tics;
}

/// digit * base^e, as a number or as a power.
inline std::string power_label(int digit, int base, int e, bool plain) {
  if (plain) return six_digits(digit * std::pow(base, e));
  return (digit == 1 ? "" : std::to_string(digit) + "·") + std::to_string(base) + "^{" +
         std::to_string(e) + "}";
}

/// Powers of the base and their multiples.
inline std::vector<Tic> power_tics(const LogAxis& axis, int base) {
  const double bottom = std::log(axis.low) / std::log(base);
  const double top = std::log(axis.high) / std::log(base);
  const int stride = 1 + static_cast<int>((top - bottom) / 8);  // powers from label to label
  // The multiples of a power that have a label too: the more, the fewer powers there are.
  const std::string_view labelled = top - bottom < 1 ? "12357" : top - bottom < 2 ? "125" : "1";
  const bool plain = base == 2 ? bottom > -2 && top < 16 : bottom > -4 && top < 5;
  std::vector<Tic> tics;
  for (int e = static_cast<int>(std::floor(bottom)); e <= top; ++e) {
    for (int digit = 1; digit < (stride == 1 ? base : 2); ++digit) {
      const double at = digit * std::pow(base, e);
      if (at < axis.low || at > axis.high) continue;
      const bool has_label =
          labelled.find(std::to_string(digit)) != std::string_view::npos && e % stride == 0;
      tics.push_back({at, has_label ? power_label(digit, base, e, plain) : ""});
    }
  }
  return tics;
}

}  // namespace detail

/// A logarithmic axis for values from `low` to `high`, with marks at powers of the base. Where the
/// values lie so close that hardly a power is among them, the marks are other round numbers.
/// Requires: base 2 or 10.
/// Throws:   InvalidInput unless 0 < low <= high, both finite.
inline LogAxis log_axis(double low, double high, int base) {
  if (!(low > 0 && low <= high && high <= (std::numeric_limits<double>::max)())) {
    throw InvalidInput("axis",
                       "from " + detail::six_digits(low) + " to " + detail::six_digits(high),
                       "positive numbers in order");
  }
  LogAxis axis = detail::without_tics(low, high);
  const bool close = axis.high / axis.low < 4;
  axis.tics = close ? detail::even_tics(axis) : detail::power_tics(axis, base);
  return axis;
}

}  // namespace scalewise::plot
