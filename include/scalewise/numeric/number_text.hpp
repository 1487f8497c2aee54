// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace scalewise::numeric {

namespace detail {

/// The shortest decimal with an exponent that reads back to a number, or the nearest with that many digits:
/// "1.5e-07", "1e+00", "inf".
inline std::string scientific_text(double x, int most_digits) {
  char text[40];
  for (int digits = 1; digits <= most_digits; ++digits) {
    std::snprintf(text, sizeof(text), "%.*e", digits - 1, x);
    if (std::strtod(text, nullptr) == x) break;
  }
  std::string result = text;
  if (result.find(',') != std::string::npos) result[result.find(',')] = '.';  // of the locale
  return result;
}

}  // namespace detail

/// A double as the shortest decimal that reads back to it, with an exponent where it is small or
/// large: "0.05", "1e-06".
/// Accuracy: exact for up to 16 digits, which every coefficient of a rule has; others are rounded to 16.
/// Differs:  std::to_chars would cost every user of the library a tenth of its compile time.
inline std::string number_text(double x) {
  if (x < 0) return "-" + number_text(-x);
  if (x == 0) return "0";
  if (!(x <= 1.7976931348623157e308)) return x > 0 ? "inf" : "nan";
  std::string text = detail::scientific_text(x, 16);
  const std::size_t end = text.find('e');
  const int exponent = std::atoi(text.c_str() + end + 1);
  if (exponent < -5 || exponent >= 7) return text;
  text.resize(end);
  if (end > 1) text.erase(1, 1);
  if (exponent < 0) return "0." + std::string(static_cast<std::size_t>(-exponent) - 1, '0') + text;
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (text.size() <= whole) return text + std::string(whole - text.size(), '0');
  return text.insert(whole, 1, '.');
}

}  // namespace scalewise::numeric
