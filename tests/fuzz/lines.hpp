// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Files of lines with checksums: inputs are written without them, so that edits get past them.

#pragma once

#include <string>
#include <string_view>

#include "fuzz/json_edit.hpp"
#include "scalewise/io/line_file.hpp"

namespace scalewise::fuzz {

/// Adds its checksum to each line that looks like an object without one.
inline std::string sealed(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    std::string line(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
    if (line.ends_with("}\n") && line.find(scalewise::detail::sum_begin) == std::string::npos) {
      line.resize(line.size() - 2);
      line += scalewise::detail::sum_of(line) + '\n';
    }
    out += line;
  }
  return out;
}

/// The opposite.
inline std::string unsealed(std::string text) {
  for (std::size_t at = 0; (at = text.find(scalewise::detail::sum_begin)) != std::string::npos;) {
    text.replace(at, text.find('}', at) - at, "");
  }
  return text;
}

/// One line edited, taken away or given twice.
inline std::string edited_lines(const std::string& text, Random& random) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::string& line = lines[below(lines.size(), random)];
  const std::size_t choice = below(8, random);
  if (choice == 0) {
    line.clear();
  } else if (choice == 1) {
    line += '\n' + lines[below(lines.size(), random)];
  } else {
    line = edited_json(line, random);
  }
  std::string out;
  for (const std::string& each : lines) out += each.empty() ? "" : each + '\n';
  return out;
}

}  // namespace scalewise::fuzz
