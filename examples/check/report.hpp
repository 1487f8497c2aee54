// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a program that checks a rule hands over: rows of numbers as text, CSV and JSON, and a
// picture. Library report.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scalewise/check/curve.hpp"
#include "scalewise/check/estimate.hpp"
#include "scalewise/check/verdict.hpp"

namespace scalewise::experiment {

using Value = std::variant<std::string, long, double>;
using Row =
    std::vector<std::pair<std::string, Value>>;  // all rows of a section have the same names

struct Section {
  std::string name;     // of the CSV file and in JSON
  std::string caption;  // in text
  std::vector<Row> rows = {};
  bool in_text = true;
  bool in_file = true;
};

using Setting =
    std::variant<std::string, long, double, std::vector<long>, std::vector<std::string>>;

struct Report {
  std::string program;
  std::vector<std::pair<std::string, Setting>> settings = {};
  std::vector<Section> sections = {};
  check::Figure figure = {};
  check::Verdict verdict = check::Verdict::pass;
  std::string reason = {};  // what the verdict rests on
};

/// Adds a mean as `name` and its standard error as `name_se`.
inline void put(Row& row, const std::string& name, const check::Estimate& e) {
  row.emplace_back(name, e.mean);
  row.emplace_back(name + "_se", e.standard_error);
}

/// Adds a point whose bar is the standard error; on a logarithmic scale it keeps above a tenth of the
/// mean.
inline void add_point(check::Curve& curve, double x, const check::Estimate& e,
                      bool logarithmic = false) {
  const double error = std::isfinite(e.standard_error) ? e.standard_error : 0;
  const double low = e.mean - error;
  curve.x.push_back(x);
  curve.y.push_back(e.mean);
  curve.low.push_back(logarithmic ? std::max(low, e.mean / 10) : low);
  curve.high.push_back(e.mean + error);
}

/// Makes the folder of --out where it is not there; empty: there is none.
/// Throws:   InvalidInput when it cannot be made.
void make_folder(const std::string& out);

/// Prints a report as `format` says (table or json), writes its files to the folder `out`, unless
/// empty, and returns the exit code.
int publish(const Report& report, const std::string& format, const std::string& out);

}  // namespace scalewise::experiment
