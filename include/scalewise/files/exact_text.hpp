// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace scalewise::inline files {

namespace detail {

/// The same as exact_text() where the standard library's std::to_chars has whole numbers only:
/// libc++ 13, and the libc++ of Emscripten 3.1.
template <class Number>
std::string exact_text_by_printf(Number x) {
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(x));
    if (static_cast<Number>(std::strtod(text, nullptr)) == x) break;
  }
  for (char& c : text) {
    if (c == ',') c = '.';  // of the locale
  }
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
    return detail::exact_text_by_printf(x);
  }
}

}  // namespace scalewise::inline files
