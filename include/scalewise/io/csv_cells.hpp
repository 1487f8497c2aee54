// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::io {

/// Whether a cell is what programs print for a number that is not finite: "inf", "-nan", "NaN", "-nan(ind)".
inline bool says_not_finite(const std::string& cell) {
  std::string text = messages::in_lower_case(cell.substr(0, cell.find('(')));
  if (text.starts_with('-') || text.starts_with('+')) text.erase(0, 1);
  return text == "nan" || text == "inf" || text == "infinity";
}

/// The cells of a line with commas. One in quotes may have commas, and quotes that are doubled.
/// Throws:   InvalidInput, naming `place`, for a quote that does not end.
inline std::vector<std::string> csv_cells(std::string_view line, const std::string& place) {
  std::vector<std::string> all(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && line.substr(i, 2) == "\"\"") {
      all.back() += line[i++];
    } else if (c == '"' && (quoted || all.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      all.emplace_back();
    } else {
      all.back() += c;
    }
  }
  if (quoted) {
    throw InvalidInput(place, "(a quote that does not end)", "a quote at the end of the cell");
  }
  return all;
}

}  // namespace scalewise::io
