// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "scalewise/numeric/power.hpp"

namespace scalewise::inline numeric {

namespace detail {

/// The same where a power of ten of that size is no double: the shortest that reads back.
inline std::string extreme_text(double x) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  for (char& c : text) {
    if (c == ',') c = '.';  // of the locale
  }
  return text;
}

}  // namespace detail

/// A double as the shortest decimal that reads back to it, with an exponent where it is small or
/// large: "0.05", "1e-06".
/// Accuracy: exact for up to 16 digits, which every coefficient of a rule has; others are cut there.
/// Differs:  std::to_chars does the same for any double, but <charconv> would cost every user of the
///           library a tenth of its compile time.
inline std::string number_text(double x) {
  if (x < 0) return "-" + number_text(-x);
  if (x == 0) return "0";
  if (!(x <= 1.7976931348623157e308)) return x > 0 ? "inf" : "nan";
  if (x < 1e-290 || x > 1e290) return detail::extreme_text(x);
  int exponent = 0;  // x = m 10^exponent with 1 <= m < 10
  const auto ten_to = [](int k) { return power(10, Exponent(k)); };
  while (x >= ten_to(exponent + 1)) ++exponent;
  while (x < ten_to(exponent)) --exponent;
  std::int64_t digits = 0;
  int decimals = 0;  // digits / 10^decimals is x, or as near as 16 digits come
  for (int count = 1; count <= 16; ++count) {
    decimals = count - 1 - exponent;
    const double scaled = decimals >= 0 ? x * ten_to(decimals) : x / ten_to(-decimals);
    digits = static_cast<std::int64_t>(scaled * 2 + 1) / 2;
    const auto whole = static_cast<double>(digits);
    if ((decimals >= 0 ? whole / ten_to(decimals) : whole * ten_to(-decimals)) == x) break;
  }
  std::string text = std::to_string(digits);
  if (exponent >= -5 && exponent < 7) {
    if (decimals <= 0) return text + std::string(static_cast<std::size_t>(-decimals), '0');
    const auto places = static_cast<std::size_t>(decimals);
    if (text.size() <= places) text.insert(0, places + 1 - text.size(), '0');
    return text.insert(text.size() - places, 1, '.');
  }
  if (text.size() > 1) text.insert(1, 1, '.');
  const std::string power = std::to_string(exponent < 0 ? -exponent : exponent);
  return text + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

}  // namespace scalewise::inline numeric
