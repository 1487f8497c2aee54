// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a program that checks a rule hands over: rows of numbers as text, CSV and JSON, and a picture.
#pragma once

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "check/experiment.hpp"
#include "scalewise/check/estimate.hpp"
#include "scalewise/check/figure.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/io/file.hpp"
#include "scalewise/io/table.hpp"

namespace scalewise::experiment {

using Row = nlohmann::ordered_json;  // an object; all rows of a section have the same keys

struct Section {
  std::string name;     // of the CSV file and in JSON
  std::string caption;  // in text
  std::vector<Row> rows;
  bool in_text = true;
};

struct Report {
  std::string program;
  std::vector<Section> sections;
  check::Figure figure;
  check::Verdict verdict = check::Verdict::pass;
  std::string reason;  // what the verdict rests on
};

/// Adds a mean as `name` and its standard error as `name_se`.
inline void put(Row& row, const std::string& name, const check::Estimate& e) {
  row[name] = e.mean;
  row[name + "_se"] = e.standard_error;
}

inline std::string cell(const Row& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  if (!std::isfinite(value.get<double>())) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value.get<double>());
  return text;
}

inline std::string render(const Section& section, TableFormat format) {
  Table table{section.caption, {}, {}};
  if (section.rows.empty()) return "";
  for (const auto& [key, value] : section.rows[0].items()) table.header.push_back(key);
  for (const Row& row : section.rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.items()) cells.push_back(cell(value));
    table.rows.push_back(std::move(cells));
  }
  return scalewise::render(table, format);
}

inline Row json_of(const Report& report, const Experiment& e) {
  Row json{{"schema", "scalewise." + report.program + "/1"},
           {"rule", e.model.rule},
           {"optimizer", e.model.optimizer},
           {"rate", e.model.rate},
           {"axis", e.axis},
           {"sizes", e.sizes},
           {"seeds", e.seeds},
           {"steps", e.model.steps},
           {"batch", e.model.batch},
           {"seq", e.model.seq}};
  for (const Section& section : report.sections) json[section.name] = section.rows;
  json["verdict"] = check::to_string(report.verdict);
  json["reason"] = report.reason;
  return json;
}

/// The folder of --out, made where it is not there.
/// Throws:   InvalidInput when it cannot be made.
inline void make_folder(const Experiment& e) {
  if (e.out.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(e.out, error);
  if (!std::filesystem::is_directory(e.out)) {
    throw InvalidInput("--out", e.out, "a folder that can be made");
  }
}

/// Prints a report, writes its files where --out says so, and returns the exit code.
inline int publish(const Report& report, const Experiment& e) {
  const Row json = json_of(report, e);
  std::string figures;
  if (!e.out.empty()) {
    make_folder(e);
    const std::string stem = (std::filesystem::path(e.out) / report.program).string();
    write_file(stem + ".json", json.dump(1) + "\n");
    for (const Section& section : report.sections) {
      write_file(stem + "_" + section.name + ".csv", render(section, TableFormat::csv));
    }
    figures = check::write_figure(report.figure, stem);
  }
  if (e.format == "json") {
    std::cout << json.dump(1) << '\n';
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
