// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "scalewise/files/exact_text.hpp"

namespace scalewise::plot::detail {

/// The shortest decimal that reads back to a double, whatever the locale of the program; nothing
/// for what is not finite.
inline std::string decimal(double x) { return std::isfinite(x) ? exact_text(x) : ""; }

/// The bytes of the UTF-8 character that a text starts with; 0 where there is none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80U) return 1;
  const std::size_t length = byte(0) < 0xE0U ? 2 : byte(0) < 0xF0U ? 3 : 4;
  if (byte(0) < 0xC2U || byte(0) > 0xF4U || text.size() < length) return 0;
  unsigned long code = byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool too_long = (length == 3 && code < 0x800U) || (length == 4 && code < 0x10000U);
  const bool no_character =
      (code >= 0xD800U && code < 0xE000U) || code > 0x10FFFFU || code == 0xFFFEU || code == 0xFFFFU;
  return too_long || no_character ? 0 : length;
}

/// A text as gnuplot takes it literally: in single quotes, on one line, and UTF-8 throughout, since
/// an SVG file with any other byte is none.
inline std::string gnuplot_text(std::string_view text) {
  std::string result = "'";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      result += '?';
    } else if (text[i] == '\'') {
      result += "''";
    } else {
      const bool control = (text[i] >= 0 && text[i] < ' ') || text[i] == '\x7f';
      result += control ? std::string_view(" ") : text.substr(i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return result + "'";
}

}  // namespace scalewise::plot::detail
