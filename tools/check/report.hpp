// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Output of most programs: rows of numbers as text, CSV and JSON, a picture and a verdict.
// Library report.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frame/program.hpp"
#include "scalewise/check/estimate.hpp"
#include "scalewise/check/verdict.hpp"
#include "scalewise/plot/curve.hpp"

namespace scalewise::experiment {

using Value = std::variant<std::string, long, double>;
using Cells =
    std::vector<std::pair<std::string, Value>>;  // all rows of a section have the same names

struct Section {
  std::string name;     // of the CSV file and in JSON
  std::string caption;  // in text
  std::vector<Cells> rows = {};
  bool in_text = true;
  bool in_file = true;
};

struct Report {
  std::vector<Section> sections = {};
  plot::Figure figure = {};  // without panels: no picture
  check::Verdict verdict = check::Verdict::pass;
  std::string reason = {};  // what the verdict rests on
};

/// Adds a mean as `name` and its standard error as `name_se`.
inline void put(Cells& row, const std::string& name, const check::Estimate& e) {
  row.emplace_back(name, e.mean);
  row.emplace_back(name + "_se", e.standard_error);
}

/// Adds a point whose bar is the standard error; on a logarithmic scale it keeps above a tenth of the
/// mean.
inline void add_point(plot::Curve& curve, double x, const check::Estimate& e,
                      bool logarithmic = false) {
  const double error = std::isfinite(e.standard_error) ? e.standard_error : 0;
  const double low = e.mean - error;
  curve.x.push_back(x);
  curve.y.push_back(e.mean);
  curve.low.push_back(logarithmic ? std::max(low, e.mean / 10) : low);
  curve.high.push_back(e.mean + error);
}

/// How every report in JSON begins.
/// Returns:  "schema", scalewise.<name>/<version>; "settings", what was asked for; "machine", what
///           computed it: "products", "vectors" and "threads".
nlohmann::ordered_json begin_report(const std::string& name, int version,
                                    const frame::Options& options);

/// Adds --out, a folder for the report of a program in PROGRAM.json and in files beside it.
/// Throws:   InvalidInput before the work, when the folder cannot be made or written, and for one that has that file
///           with other inputs among its "settings".
frame::Option& add_out_option(frame::Options& options, std::string& out,
                              const std::string& program);

/// Lets a program make a report: adds the options --threads, --format, --out and --quiet, and prints
/// and writes what `run` returns, with the program's settings. After a request to stop, `run` reports
/// what is finished or throws frame::Interrupted. `before`, if any, is called first, and returns an exit
/// code if there is nothing to report yet. program.expected, if any, gets the threads of a run.
void make_report(frame::Program& program, std::function<Report()> run,
                 std::function<std::optional<int>()> before = {});

/// A verdict in its color. Without color where standard output is not a terminal, where the terminal has none, and where
/// NO_COLOR is set (https://no-color.org).
std::string painted(check::Verdict verdict);

/// Says that a report is of what was finished only.
void stopped_early(Report& report, long finished, long all, const std::string& what = "runs");

}  // namespace scalewise::experiment
