// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"

namespace scalewise::inline io {

enum class TableFormat { text, markdown, latex, csv };

/// A rectangular table of strings with a caption.
struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// Columns that a UTF-8 text takes on a terminal, for the letters that formulas use.
inline std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

namespace detail {

/// Escapes each special character of a text by `replacement`.
inline std::string escaped(std::string_view text, std::string_view special,
                           std::string_view before) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += before;
    result += c;
  }
  return result;
}

inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return "\"" + escaped(text, "\"", "\"") + "\"";
}

/// Throws:   InvalidInput for a row that has not as many cells as the header.
inline void require_rectangular(const Table& table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].size() == table.header.size()) continue;
    throw InvalidInput("table \"" + printable(table.caption) + "\", row " + std::to_string(i),
                       std::to_string(table.rows[i].size()) + " cells",
                       std::to_string(table.header.size()) + ", one for each column");
  }
}

inline std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(display_width(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = display_width(row[i]);
      if (width > widths[i]) widths[i] = width;
    }
  }
  return widths;
}

inline std::string text_row(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line += std::string(widths[i] - display_width(cells[i]) + 2, ' ');
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

inline std::string joined(const std::vector<std::string>& cells, const std::string& open,
                          const std::string& between, const std::string& close) {
  std::string line = open;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? between : "") + cells[i];
  return line + close;
}

}  // namespace detail

/// The table as aligned plain text, Markdown, LaTeX (booktabs) or CSV.
/// LaTeX cells are taken as they are.
/// Throws:   InvalidInput for a row that has not as many cells as the header.
inline std::string render(const Table& table, TableFormat format) {
  detail::require_rectangular(table);
  std::string out;
  if (format == TableFormat::text) {
    const std::vector<std::size_t> widths = detail::column_widths(table);
    if (!table.caption.empty()) out += table.caption + "\n";
    out += detail::text_row(table.header, widths);
    for (const auto& row : table.rows) out += detail::text_row(row, widths);
  } else if (format == TableFormat::markdown) {
    if (!table.caption.empty()) out += "**" + table.caption + "**\n\n";
    out += detail::joined(table.header, "| ", " | ", " |\n");
    out += detail::joined(std::vector<std::string>(table.header.size(), "---"), "|", "|", "|\n");
    for (const auto& row : table.rows) {
      std::vector<std::string> cells;
      cells.reserve(row.size());
      for (const std::string& cell : row) cells.push_back(detail::escaped(cell, "|*", "\\"));
      out += detail::joined(cells, "| ", " | ", " |\n");
    }
  } else if (format == TableFormat::latex) {
    out += "\\begin{tabular}{" + std::string(table.header.size(), 'l') + "}\n\\toprule\n";
    out += detail::joined(table.header, "", " & ", " \\\\\n\\midrule\n");
    for (const auto& row : table.rows) out += detail::joined(row, "", " & ", " \\\\\n");
    out += "\\bottomrule\n\\end{tabular}\n";
    if (!table.caption.empty()) out = "% " + table.caption + "\n" + out;
  } else {
    std::vector<std::vector<std::string>> lines{table.header};
    lines.insert(lines.end(), table.rows.begin(), table.rows.end());
    for (std::vector<std::string>& line : lines) {
      for (std::string& cell : line) cell = detail::csv_field(cell);
      out += detail::joined(line, "", ",", "\n");
    }
  }
  return out;
}

}  // namespace scalewise::inline io
