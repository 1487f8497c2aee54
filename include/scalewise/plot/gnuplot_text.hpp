// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "scalewise/messages/utf8.hpp"
#include "scalewise/numeric/exact_text.hpp"

namespace scalewise::plot::detail {

/// The shortest decimal that reads back to a double, whatever the locale of the program; nothing
/// for what is not finite.
inline std::string decimal(double x) { return std::isfinite(x) ? numeric::exact_text(x) : ""; }

/// A text as gnuplot takes it literally: in double quotes, since single ones fail where a text begins with
/// one. Between backquotes it would run a command. A line of visible characters, as an SVG needs.
inline std::string gnuplot_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : messages::visible_text(text)) {
    if (c == '`') {
      result += "\\140";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace scalewise::plot::detail
