// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "scalewise/files/file.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/plot/curve.hpp"
#include "scalewise/plot/gnuplot.hpp"
#include "scalewise/plot/run_program.hpp"

namespace scalewise::plot {

namespace detail {

inline void check_lengths(const Figure& figure) {
  if (figure.panels.empty()) throw InvalidInput("figure", "no panel", "at least one");
  for (const Panel& panel : figure.panels) {
    for (const Curve& curve : panel.curves) {
      const auto check = [&](const char* name, const std::vector<double>& values) {
        if (values.size() == curve.x.size()) return;
        throw InvalidInput("curve \"" + messages::printable(curve.label) + "\", " + name,
                           std::to_string(values.size()) + " values",
                           std::to_string(curve.x.size()) + ", one for each x");
      };
      check("y", curve.y);
      if (curve.low.empty() && curve.high.empty()) continue;
      check("low", curve.low);
      check("high", curve.high);
    }
  }
}

/// Where gnuplot says what was wrong: below the command at fault, after its number.
inline std::string first_error(const std::string& errors) {
  std::istringstream lines(errors);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("warning:") != std::string::npos || line.empty()) continue;
    if (line.find(" line ") != std::string::npos) return line;
    if (first.empty()) first = line;
  }
  return first.empty() ? "it gave no reason" : first;
}

}  // namespace detail

/// A figure as CSV.
/// Shapes:   one row per point: panel, curve, x, y, low, high
/// Accuracy: each number reads back to the same double; what is not finite is empty.
inline std::string figure_csv(const Figure& figure) {
  Table table{"", {"panel", "curve", "x", "y", "low", "high"}, {}};
  for (const Panel& panel : figure.panels) {
    for (const Curve& curve : panel.curves) {
      for (std::size_t i = 0; i < curve.x.size(); ++i) {
        const auto bar = [&](const std::vector<double>& ends) {
          return ends.empty() ? "" : detail::decimal(ends[i]);
        };
        table.rows.push_back({panel.title, curve.label, detail::decimal(curve.x[i]),
                              detail::decimal(curve.y[i]), bar(curve.low), bar(curve.high)});
      }
    }
  }
  return render(table, TableFormat::csv);
}

/// The pictures of a figure, as the contents of files.
struct Drawing {
  std::string svg = {};
  std::string png = {};
  std::string problem = {};  // why there are none; empty: there are
};

/// Draws a figure; needs gnuplot, which is handed its commands and hands back the pictures, without files.
/// Returns:  the pictures, or the problem: gnuplot is not found, fails, or takes longer than `limit`.
/// Throws:   InvalidInput without a panel, and for ragged curves.
inline Drawing draw_figure(const Figure& figure,
                           std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  detail::check_lengths(figure);
  // With -d it reads no start-up file of the user's.
  detail::ProgramRun run = detail::run_program("gnuplot", "-d", gnuplot_commands(figure), limit);
  const std::size_t png = run.output.find("\x89PNG\r\n\x1a\n");  // no text in UTF-8 has it
  if (run.problem.empty() && png != 0 && png != std::string::npos) {
    return {.svg = run.output.substr(0, png), .png = run.output.substr(png)};
  }
  if (run.problem.empty()) run.problem = "gnuplot failed";
  if (run.problem.ends_with("failed")) run.problem += ": " + detail::first_error(run.errors);
  if (run.problem.ends_with("not found")) run.problem += "; install gnuplot to get them";
  return {.problem = run.problem};
}

/// Writes stem.csv, and stem.svg and stem.png where they were drawn.
/// Shapes:   one row of the CSV per point: panel, curve, x, y, low, high
/// Returns:  what to tell the user: the files written, or what to install to get pictures.
/// Throws:   InvalidInput when a file cannot be written, without a panel, and for ragged curves.
inline std::string write_figure(const Figure& figure, const std::string& stem,
                                const Drawing& drawing) {
  detail::check_lengths(figure);
  files::write_file(stem + ".csv", figure_csv(figure));
  if (!drawing.problem.empty()) return "wrote " + stem + ".csv; no pictures: " + drawing.problem;
  files::write_file(stem + ".svg", drawing.svg);
  files::write_file(stem + ".png", drawing.png);
  return "wrote " + stem + ".csv, .svg and .png";
}

/// The same, drawn here where gnuplot is installed.
inline std::string write_figure(const Figure& figure, const std::string& stem) {
  return write_figure(figure, stem, draw_figure(figure));
}

}  // namespace scalewise::plot
