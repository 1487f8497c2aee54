// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/io/quoting.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise {

/// The forms that a table is printed in.
enum class TableFormat { text, markdown, latex, csv };

/// A rectangular table of strings with a caption. They are plain text, which render() quotes for each format.
struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::map<std::string, std::string> latex =
      {};  // of formulas, by their text; none is in the first column
};

namespace io {

/// Columns that a UTF-8 text takes on a terminal, for the letters that formulas use.
inline std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++width;
  }
  return width;
}

}  // namespace io

namespace detail {

/// Throws:   InvalidInput for a row that has not as many cells as the header.
inline void require_rectangular(const Table& table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].size() == table.header.size()) continue;
    throw InvalidInput(
        "table \"" + messages::printable(table.caption) + "\", row " + std::to_string(i),
        std::to_string(table.rows[i].size()) + " cells",
        std::to_string(table.header.size()) + ", one for each column");
  }
}

inline std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const std::string& name : table.header) widths.push_back(io::display_width(name));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t width = io::display_width(row[i]);
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
    if (i + 1 < cells.size()) line += std::string(widths[i] - io::display_width(cells[i]) + 2, ' ');
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

inline std::string joined(const std::vector<std::string>& cells, const std::string& open,
                          const std::string& between, const std::string& close) {
  std::string line = open;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? between : "") + cells[i];
  return line + close;
}

/// The header and the rows, each text quoted for a language; `quote` also gets the number of the column.
template <class Quote>
std::vector<std::vector<std::string>> quoted_lines(const Table& table, Quote&& quote) {
  std::vector<std::vector<std::string>> lines{table.header};
  lines.insert(lines.end(), table.rows.begin(), table.rows.end());
  for (std::vector<std::string>& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = quote(line[i], i);
  }
  return lines;
}

inline std::string as_text(const Table& table) {
  const std::vector<std::size_t> widths = column_widths(table);
  std::string out = table.caption.empty() ? "" : table.caption + "\n";
  out += text_row(table.header, widths);
  for (const auto& row : table.rows) out += text_row(row, widths);
  return out;
}

inline std::string as_markdown(const Table& table) {
  std::string out = table.caption.empty() ? "" : "**" + io::markdown_text(table.caption) + "**\n\n";
  std::string rule = joined(std::vector<std::string>(table.header.size(), "---"), "|", "|", "|\n");
  for (const auto& line : quoted_lines(
           table, [](const std::string&cell, std::size_t) { return io::markdown_text(cell); })) {
    out += joined(line, "| ", " | ", " |\n") + std::exchange(rule, "");
  }
  return out;
}

inline std::string as_latex(const Table& table) {
  const auto quote = [&](const std::string& cell, std::size_t column) {
    const auto formula = table.latex.find(cell);
    const bool is_text = column == 0 || formula == table.latex.end();
    return is_text ? io::latex_text(cell) : formula->second;
  };
  std::string out = table.caption.empty() ? "" : "% " + io::comment_text(table.caption) + "\n";
  out += "\\begin{tabular}{" + std::string(table.header.size(), 'l') + "}\n\\toprule\n";
  std::string rule = "\\midrule\n";
  for (const auto& line : quoted_lines(table, quote)) {
    // A line that begins so would be an argument of the one before.
    const bool argument = !line.empty() && (line[0].starts_with('[') || line[0].starts_with('*'));
    out += joined(line, argument ? "{}" : "", " & ", " \\\\\n") + std::exchange(rule, "");
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

inline std::string as_csv(const Table& table) {
  std::string out;
  for (const auto& line :
       quoted_lines(table, [](const std::string&cell, std::size_t) { return io::csv_field(cell); }))
    out += joined(line, "", ",", "\n");
  return out;
}

}  // namespace detail

/// The table as aligned plain text, Markdown, LaTeX (booktabs) or CSV.
/// Throws:   InvalidInput for a row that has not as many cells as the header.
inline std::string render(const Table& table, TableFormat format) {
  detail::require_rectangular(table);
  switch (format) {
    case TableFormat::text:
      return detail::as_text(table);
    case TableFormat::markdown:
      return detail::as_markdown(table);
    case TableFormat::latex:
      return detail::as_latex(table);
    case TableFormat::csv:
      return detail::as_csv(table);
  }
  return "";
}

}  // namespace scalewise
