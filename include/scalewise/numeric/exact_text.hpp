// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "scalewise/numeric/number_text.hpp"

namespace scalewise::numeric {

namespace detail {

/// The same text where std::to_chars has no doubles: libc++ 13, and the libc++ of Emscripten 3.1.
inline std::string exact_text_by_printf(double x) {
  std::string text = scientific_text(x, 17);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;  // inf or nan
  const std::size_t point = (std::min)(text.find('.'), e - 1);
  const int decimals = static_cast<int>(e - point) - 1 - std::atoi(text.c_str() + e + 1);
  char fixed[400];
  std::snprintf(fixed, sizeof(fixed), "%.*f", (std::max)(decimals, 0), x);
  if (std::strlen(fixed) <= text.size()) text = fixed;
  std::replace(text.begin(), text.end(), ',', '.');  // of the locale
  return text;
}

}  // namespace detail

/// The shortest text that reads back to the same number, whatever the locale of the program.
template <class Number>
std::string exact_text(Number x) {
  char digits[32];
  if constexpr (requires { std::to_chars(digits, digits, x).ptr; }) {
    return {digits, std::to_chars(digits, digits + sizeof(digits), x).ptr};
  } else {
    return detail::exact_text_by_printf(static_cast<double>(x));
  }
}

}  // namespace scalewise::numeric
