// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The texts of a picture: where they are, and which of them overlap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/plot/svg_text.hpp"

namespace scalewise::test {

/// A text of a picture, and the rectangle that it fills at most: ascent and descent of DejaVu Sans.
struct Text {
  std::string text;
  double left, right, top, bottom;
};

inline double attribute(const std::string& tag, const std::string& name) {
  return std::atof(tag.c_str() + tag.find(" " + name + "=\"") + name.size() + 3);
}

/// A text of the file as a reader sees it.
inline std::string shown(std::string text) {
  const std::array<std::pair<std::string, char>, 4> escapes{
      {{"&quot;", '"'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}}};
  for (const auto& [escape, character] : escapes) {
    for (std::size_t at = text.find(escape); at != std::string::npos; at = text.find(escape, at)) {
      text.replace(at++, escape.size(), 1, character);
    }
  }
  return text;
}

inline std::vector<Text> texts_of(const std::string& svg) {
  std::vector<Text> texts;
  for (std::size_t at = svg.find("<text "); at != std::string::npos;
       at = svg.find("<text ", at + 1)) {
    const std::size_t end = svg.find('>', at);
    const std::string tag = svg.substr(at, end - at);
    const std::string text = shown(svg.substr(end + 1, svg.find("</text>", end) - end - 1));
    const double size = attribute(tag, "font-size");
    // Bold letters of DejaVu Sans are at most 1.262 times as wide as plain ones.
    const double bold = tag.find("bold") == std::string::npos ? 1 : 1.262;
    const double wide = bold * plot::text_width(text, size);
    const bool centred = tag.find("text-anchor=\"middle\"") != std::string::npos;
    const double x = attribute(tag, "x") - (centred ? wide / 2 : 0);
    const double y = attribute(tag, "y");
    texts.push_back({text, x, x + wide, y - 0.93 * size, y + 0.24 * size});
  }
  return texts;
}

/// Pairs that overlap, and what leaves the picture.
inline std::vector<std::string> faults_of(const std::string& svg) {
  std::vector<std::string> faults;
  const std::vector<Text> texts = texts_of(svg);
  const double width = attribute(svg, "width");
  const double height = attribute(svg, "height");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Text& a = texts[i];
    if (a.left < 0 || a.right > width || a.top < 0 || a.bottom > height) faults.push_back(a.text);
    for (std::size_t j = 0; j < i; ++j) {
      const Text& b = texts[j];
      const bool apart =
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      if (!apart) faults.push_back(a.text + " | " + b.text);
    }
  }
  return faults;
}

}  // namespace scalewise::test
