// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "check/tasks.hpp"
#include "frame/machine.hpp"
#include "scalewise/messages/utf8.hpp"

namespace scalewise::experiment {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* nothing = "–";

bool is_span(const Json& value) {
  return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
}

void add_value(PageTable& table, const std::string& name, const Json& value) {
  if (!value.is_object()) {
    table.rows.push_back({{name}, cell_of(value)});
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    add_value(table, fmt::format("{} {}", name, key), inner);
  }
}

}  // namespace

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

Cell cell_of(const Json& value) {
  if (value.is_null()) return {nothing};
  if (value.is_boolean()) return {value.get<bool>() ? "yes" : "no"};
  if (value.is_number_float()) return {fmt::format("{:.4g}", value.get<double>()), value.dump()};
  if (value.is_number()) return {value.dump(), value.dump()};
  if (value.is_string()) {
    const auto text = value.get<std::string>();
    const bool verdict = text == "pass" || text == "fail" || text == "inconclusive";
    return {text.empty() ? nothing : text, "", verdict ? text : ""};
  }
  if (is_span(value)) {
    Cell low = cell_of(value[0]);
    const Cell high = cell_of(value[1]);
    if (value[0] == value[1]) return low;
    return {low.text + " to " + high.text, low.exact + " to " + high.exact};
  }
  Cell all;
  for (const Json& item : value) all.text += (all.text.empty() ? "" : ", ") + cell_of(item).text;
  return all.text.empty() ? Cell{nothing} : all;
}

PageTable table_of(const Json& rows) {
  PageTable table;
  for (const Json& row : rows) {
    std::vector<Cell> cells;
    for (const auto& [name, value] : row.items()) {
      if (table.rows.empty()) table.header.push_back(name);
      cells.push_back(cell_of(value));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

PageTable table_of(const Table& texts) {
  PageTable table{texts.header, {}};
  for (const std::vector<std::string>& row : texts.rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const std::string& text : row) {
      cells.push_back({text, "",
                       text.ends_with("FAIL") ? "fail"
                       : text.ends_with("?")  ? "inconclusive"
                                              : ""});
    }
  }
  return table;
}

PageTable values_table(const Json& object, const std::vector<std::string>& names) {
  PageTable table{{"name", "value"}, {}};
  for (const std::string& name : names) add_value(table, name, object.at(name));
  return table;
}

namespace {

/// A word for somebody who copies it from a page. Bytes that a page cannot show, as some paths have them, are
/// written by their numbers, as bash, zsh and POSIX of 2024 read them.
std::string copied_word(const std::string& word) {
  if (messages::is_printable_utf8(word)) return shell_quoted(word);
  std::string quoted = "$'";
  for (std::string_view rest = word; !rest.empty();) {
    const auto [length, code] = messages::utf8_character(rest);
    const std::string_view bytes = rest.substr(0, length == 0 ? 1 : length);
    rest.remove_prefix(bytes.size());
    if (length > 0 && messages::is_visible(code)) {
      quoted += code == '\'' || code == '\\' ? "\\" + std::string(bytes) : std::string(bytes);
      continue;
    }
    for (const char byte : bytes) {
      quoted += fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
    }
  }
  return quoted + "'";
}

}  // namespace

std::string command_line(const std::string& program, const std::vector<std::string>& words) {
  std::string command = program;
  for (const std::string& word : words) command += " " + copied_word(word);
  return command;
}

void add_origin(Page& page, const Json& report, const std::string& program,
                const frame::Options& options) {
  PageTable settings{{"setting", "value"}, {}};
  for (const auto& [name, value] : report.at("settings").items()) add_value(settings, name, value);
  page.sections.push_back({.title = "Settings", .table = std::move(settings)});
  page.sections.push_back(
      {.title = "How to reproduce",
       .lines =
           {"The same numbers on such a machine, on any number of threads, unless --budget ends it "
            "earlier. Paths are those of the folder in which it was run. With --out FOLDER it "
            "writes this page again:"},
       .command = command_line(program, options.given_words())});
  PageTable machine{{"name", "value"},
                    {{{"program"}, {program}}, {{"scalewise"}, {SCALEWISE_VERSION}}}};
  for (const auto& [name, value] : report.at("machine").items()) {
    if (name != "threads") add_value(machine, name, value);  // results do not depend on them
  }
  page.sections.push_back({.title = "Machine and version", .table = std::move(machine)});
}

}  // namespace scalewise::experiment
