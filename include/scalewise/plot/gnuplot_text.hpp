// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include "scalewise/files/exact_text.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::plot::detail {

/// The shortest decimal that reads back to a double, whatever the locale of the program; nothing
/// for what is not finite.
inline std::string decimal(double x) { return std::isfinite(x) ? exact_text(x) : ""; }

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
