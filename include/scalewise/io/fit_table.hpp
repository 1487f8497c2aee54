// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/io/table.hpp"

namespace scalewise {

namespace detail {

/// Lines of at most `width` columns, cut at spaces; longer words stay whole.
inline std::vector<std::string> lines_of_cell(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string word(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    const bool fits = io::display_width(line) + 1 + io::display_width(word) <= width;
    if (!line.empty() && !fits) lines.push_back(std::exchange(line, ""));
    if (!line.empty()) line += ' ';
    line += word;
  }
  lines.push_back(line);
  return lines;
}

/// The same table with cells of at most `width` columns; a row takes as many rows as its cells have
/// lines.
inline Table with_wrapped_cells(const Table& table, std::size_t width) {
  Table result{table.caption, {}, {}};
  const auto add = [&](const std::vector<std::string>& row) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (io::display_width(row[i]) <= width) {
        if (rows.empty()) rows.emplace_back(row.size());
        rows[0][i] = row[i];
        continue;
      }
      const std::vector<std::string> lines = lines_of_cell(row[i], width);
      while (rows.size() < lines.size()) rows.emplace_back(row.size());
      for (std::size_t k = 0; k < lines.size(); ++k) rows[k][i] = lines[k];
    }
    for (std::vector<std::string>& line : rows) result.rows.push_back(std::move(line));
  };
  add(table.header);
  for (const auto& row : table.rows) add(row);
  if (result.rows.empty()) return table;
  // Lines of the header past the first look like rows, above all others.
  result.header = result.rows.front();
  result.rows.erase(result.rows.begin());
  return result;
}

}  // namespace detail

namespace io {

/// Tables that together have the cells of one and fit `columns` of a terminal where words allow: cells
/// wider than half of that are wrapped at spaces, and columns that find no room go to another table,
/// next to the first column. With 0 columns, or when it fits, the table stays as it is.
/// Throws:   InvalidInput for a row that has not as many cells as the header.
inline std::vector<Table> fit_table(const Table& table, std::size_t columns) {
  detail::require_rectangular(table);
  const auto width_of = [](const std::vector<std::size_t>& widths) {
    std::size_t sum = 0;
    for (const std::size_t width : widths) sum += width + (sum > 0 ? 2 : 0);
    return sum;
  };
  if (columns == 0 || width_of(detail::column_widths(table)) <= columns) return {table};
  const Table narrow = detail::with_wrapped_cells(table, columns > 4 ? columns / 2 - 1 : 1);
  const std::vector<std::size_t> widths = detail::column_widths(narrow);
  std::vector<Table> tables;
  for (std::size_t next = 1; next < widths.size() || tables.empty();) {
    std::vector<std::size_t> chosen{0};
    std::size_t width = widths.empty() ? 0 : widths[0];
    while (next < widths.size() && (chosen.size() == 1 || width + 2 + widths[next] <= columns)) {
      width += 2 + widths[next];
      chosen.push_back(next++);
    }
    const auto cells = [&](const std::vector<std::string>& row) {
      std::vector<std::string> some;
      some.reserve(chosen.size());
      for (const std::size_t i : chosen) some.push_back(row[i]);
      return some;
    };
    Table& part = tables.emplace_back();
    part.caption = tables.size() == 1 ? table.caption : "";
    part.header = cells(narrow.header);
    for (const auto& row : narrow.rows) part.rows.push_back(cells(row));
  }
  return tables;
}

/// The table as aligned text that fits a terminal, its parts with an empty line in between.
inline std::string render_to_fit(const Table& table, std::size_t columns) {
  std::string text;
  for (const Table& part : fit_table(table, columns)) {
    text += (text.empty() ? "" : "\n") + render(part, TableFormat::text);
  }
  return text;
}

}  // namespace io

}  // namespace scalewise
