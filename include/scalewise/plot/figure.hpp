// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "scalewise/files/file.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/plot/curve.hpp"
#include "scalewise/plot/gnuplot.hpp"

namespace scalewise::plot {

namespace detail {

inline void check_lengths(const Figure& figure) {
  if (figure.panels.empty()) throw InvalidInput("figure", "no panel", "at least one");
  for (const Panel& panel : figure.panels) {
    for (const Curve& curve : panel.curves) {
      const auto check = [&](const char* name, const std::vector<double>& values) {
        if (values.size() == curve.x.size()) return;
        throw InvalidInput("curve \"" + printable(curve.label) + "\", " + name,
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

/// A folder for temporary files that exists as long as this object does.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error_);
    for (int i = 0; i < 1000 && path_.empty() && !error_; ++i) {
      const std::filesystem::path path = parent / ("scalewise-figure-" + std::to_string(i));
      if (std::filesystem::create_directory(path, error_)) path_ = absolute(path);
    }
  }
  ~TemporaryFolder() {
    if (!path_.empty()) std::filesystem::remove_all(path_, error_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  bool exists() const { return !path_.empty(); }

 private:
  std::filesystem::path path_;
  std::error_code error_;
};

/// A word of a POSIX shell that stands for a text.
inline std::string shell_word(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
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

/// Draws a figure; needs gnuplot and a POSIX shell.
/// Throws:   InvalidInput without a panel, and for ragged curves.
inline Drawing draw_figure(const Figure& figure) {
  detail::check_lengths(figure);
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) {
    return {.problem = "gnuplot was not found; install gnuplot to get them"};
  }
  const detail::TemporaryFolder folder;
  if (!folder.exists()) return {.problem = "there is no folder for temporary files"};
  write_file(folder.file("commands"), gnuplot_commands(figure));
  // gnuplot sees no path, and reads no start-up file of the user's.
  const std::string command = "cd " + detail::shell_word(folder.file("")) +
                              " && gnuplot -d commands </dev/null >/dev/null 2>errors";
  const bool drawn = std::system(command.c_str()) == 0;
  constexpr std::size_t limit = std::size_t{1} << 30;
  std::error_code missing;
  for (const char* kind : {"svg", "png"}) {
    const auto size =
        std::filesystem::file_size(folder.file(std::string("figure.") + kind), missing);
    if (drawn && !missing && size > 0) continue;
    return {.problem =
                "gnuplot failed: " + detail::first_error(read_file(folder.file("errors"), limit))};
  }
  return {read_file(folder.file("figure.svg"), limit), read_file(folder.file("figure.png"), limit)};
}

/// Writes stem.csv, and stem.svg and stem.png where they were drawn.
/// Shapes:   one row of the CSV per point: panel, curve, x, y, low, high
/// Returns:  what to tell the user: the files written, or what to install to get pictures.
/// Throws:   InvalidInput when a file cannot be written, without a panel, and for ragged curves.
inline std::string write_figure(const Figure& figure, const std::string& stem,
                                const Drawing& drawing) {
  detail::check_lengths(figure);
  write_file(stem + ".csv", figure_csv(figure));
  if (!drawing.problem.empty()) return "wrote " + stem + ".csv; no pictures: " + drawing.problem;
  write_file(stem + ".svg", drawing.svg);
  write_file(stem + ".png", drawing.png);
  return "wrote " + stem + ".csv, .svg and .png";
}

/// The same, drawn here where gnuplot is installed.
inline std::string write_figure(const Figure& figure, const std::string& stem) {
  return write_figure(figure, stem, draw_figure(figure));
}

}  // namespace scalewise::plot
