// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/report.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "scalewise/check/figure.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/table.hpp"

namespace scalewise::experiment {

namespace {

/// Four digits for people, all of them for programs.
std::string text_of(const Value& cell, TableFormat format) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* whole = std::get_if<long>(&cell)) return std::to_string(*whole);
  const double number = std::get<double>(cell);
  const bool people = format == TableFormat::text;
  if (!std::isfinite(number)) return people ? "-" : "";
  if (!people) return check::detail::decimal(number);
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", number);
  return text;
}

std::string render(const Section& section, TableFormat format) {
  Table table{section.caption, {}, {}};
  if (section.rows.empty()) return "";
  for (const auto& [name, value] : section.rows[0]) table.header.push_back(name);
  for (const Row& row : section.rows) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : row) cells.push_back(text_of(value, format));
    table.rows.push_back(std::move(cells));
  }
  return scalewise::render(table, format);
}

nlohmann::ordered_json json_of(const Row& row) {
  nlohmann::ordered_json object;
  for (const auto& [name, cell] : row) {
    std::visit([&, key = name](const auto& value) { object[key] = value; }, cell);
  }
  return object;
}

/// What is not finite becomes null.
nlohmann::ordered_json json_of(const Report& report) {
  nlohmann::ordered_json json{{"schema", "scalewise." + report.program + "/1"}};
  auto& settings = json["settings"] = nlohmann::ordered_json::object();
  for (const auto& [name, setting] : report.settings) {
    std::visit([&, key = name](const auto& value) { settings[key] = value; }, setting);
  }
  for (const Section& section : report.sections) {
    if (!section.in_file) continue;
    auto& rows = json[section.name] = nlohmann::ordered_json::array();
    for (const Row& row : section.rows) rows.push_back(json_of(row));
  }
  json["verdict"] = check::to_string(report.verdict);
  json["reason"] = report.reason;
  return json;
}

}  // namespace

void make_folder(const std::string& out) {
  if (out.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (!std::filesystem::is_directory(out)) {
    throw InvalidInput("--out", out, "a folder that can be made");
  }
}

int publish(const Report& report, const std::string& format, const std::string& out) {
  const std::string json = json_of(report).dump(1) + "\n";
  std::string figures;
  if (!out.empty()) {
    const std::string stem = (std::filesystem::path(out) / report.program).string();
    write_file(stem + ".json", json);
    for (const Section& section : report.sections) {
      if (!section.in_file) continue;
      write_file(stem + "_" + section.name + ".csv", render(section, TableFormat::csv));
    }
    figures = check::write_figure(report.figure, stem);
  }
  if (format == "json") {
    std::cout << json;
  } else {
    for (const Section& section : report.sections) {
      if (section.in_text) std::cout << render(section, TableFormat::text) << '\n';
    }
    std::cout << check::to_string(report.verdict) << ": " << report.reason << '\n';
    if (!figures.empty()) std::cout << figures << '\n';
  }
  if (!std::cout.flush()) {
    throw InvalidInput("output", "(terminal)", "a place that takes all of it");
  }
  return check::exit_code(report.verdict);
}

}  // namespace scalewise::experiment
