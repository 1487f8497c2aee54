// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/utf8.hpp"
#include "scalewise/plot/gnuplot_text.hpp"

namespace scalewise::plot {

namespace detail {

/// Advance widths of the characters from space to ~ in DejaVu Sans, in thousandths of the font size.
inline constexpr short advance_widths[] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

/// The first character of a text, or byte where it is none.
struct Letter {
  std::size_t length = 1;
  long advance = 1000;  // in thousandths of the font size

  explicit Letter(std::string_view text) {
    if (const std::size_t known = messages::utf8_length(text); known != 0) length = known;
    const bool ascii = text[0] >= ' ' && text[0] <= '~';
    if (ascii) advance = advance_widths[text[0] - ' '];
    if (text.starts_with("·")) advance = 500;
  }
};

/// Of thousandths of the font size.
inline double width_of(long thousandths, double font_size) {
  return static_cast<double>(thousandths) / 1000 * font_size;
}

}  // namespace detail

/// An upper bound of the width of a text in a sans-serif font: exact in DejaVu Sans for ASCII, half an
/// em for "·" and one em for any other character. Most other fonts are narrower.
/// Units:    those of font_size
inline double text_width(std::string_view text, double font_size) {
  long thousandths = 0;
  for (std::size_t i = 0; i < text.size();) {
    const detail::Letter letter(text.substr(i));
    thousandths += letter.advance;
    i += letter.length;
  }
  return detail::width_of(thousandths, font_size);
}

/// Bold letters of DejaVu Sans are at most so many times as wide as plain ones.
inline constexpr double bold_to_plain = 1.27;

/// A text as XML, also within double quotes: a line of visible characters.
inline std::string xml_text(std::string_view text) {
  std::string result;
  for (const char c : messages::visible_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// A text in lines that are not wider than `width`: broken after the last of " /·)…" that fits, unless
/// hardly a character stood before it, and where there is none between any two characters.
/// Units:    those of font_size
inline std::vector<std::string> wrapped(std::string_view text, double width, double font_size) {
  std::vector<std::string> lines;
  for (bool fits = false; !fits;) {
    std::size_t end = 0;
    std::size_t best = 0;
    long thousandths = 0;
    fits = true;
    while (end < text.size()) {
      const detail::Letter letter(text.substr(end));
      thousandths += letter.advance;
      if (detail::width_of(thousandths, font_size) > width) fits = false;
      if (!fits && end > 0) break;
      const std::string_view last = text.substr(end, letter.length);
      end += letter.length;
      const bool may = last == " " || last == "/" || last == "·" || last == ")" || last == "…";
      if (may && end > 2) best = end;
    }
    if (fits) break;
    if (best == 0) best = end;
    std::string_view line = text.substr(0, best);
    while (line.ends_with(' ')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(best);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

}  // namespace scalewise::plot
