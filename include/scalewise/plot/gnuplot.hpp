// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/io/table.hpp"
#include "scalewise/plot/axis_tics.hpp"
#include "scalewise/plot/curve.hpp"
#include "scalewise/plot/gnuplot_text.hpp"

namespace scalewise::plot {

namespace detail {

/// The smallest and the largest of some values.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
};

inline bool has_bars(const Curve& curve) { return !curve.low.empty(); }

/// A value without the extremes over which gnuplot fails: such numbers count as zero or infinite.
inline double within_reach(double x) {
  if (std::abs(x) < 1e-300) return 0;
  return std::abs(x) > 1e300 ? std::copysign(std::numeric_limits<double>::infinity(), x) : x;
}

/// Whether the axes can show a value of a point, or the end of a bar.
inline bool on_axis(double x, bool logarithmic) {
  return std::isfinite(within_reach(x)) && (!logarithmic || within_reach(x) > 0);
}

inline bool drawable(const Panel& panel, double x, double y) {
  return on_axis(x, panel.log_x) && on_axis(y, panel.log_y);
}

inline bool has_points(const Panel& panel) {
  for (const Curve& curve : panel.curves) {
    if (!curve.line && !curve.points && !has_bars(curve)) continue;
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (drawable(panel, curve.x[i], curve.y[i])) return true;
    }
  }
  return false;
}

/// The range of a panel's drawable points and their error bars along one axis.
inline Range range_of(const Panel& panel, bool is_x) {
  Range range;
  const auto add = [&](double value) {
    if (on_axis(value, is_x ? panel.log_x : panel.log_y)) range.add(within_reach(value));
  };
  for (const Curve& curve : panel.curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (!drawable(panel, curve.x[i], curve.y[i])) continue;
      add(is_x ? curve.x[i] : curve.y[i]);
      if (is_x || !has_bars(curve)) continue;
      add(curve.low[i]);
      add(curve.high[i]);
    }
  }
  return range;
}

/// Scale, range and marks of one axis of a panel with points.
inline std::string axis_commands(const Panel& panel, bool is_x) {
  const std::string name = is_x ? "x" : "y";
  const Range range = range_of(panel, is_x);
  std::string out = "set " + name + "label " + gnuplot_text(is_x ? panel.x_label : panel.y_label) +
                    " noenhanced\nset format " + name + " '%g'\n";
  if (!(is_x ? panel.log_x : panel.log_y)) {
    const double span = range.high - range.low;
    // Left to itself, gnuplot sets so many marks that long numbers below them touch.
    const bool own_step = is_x && span > 0 && std::isfinite(span);
    return out + "unset logscale " + name + "\nset " + name + "range [*:*]\nset " + name +
           "tics nomirror " + (own_step ? decimal(round_step(span)) : "autofreq") + "\n";
  }
  const LogAxis axis = log_axis(range.low, range.high, is_x ? 2 : 10);
  out += "set logscale " + name + "\nset " + name + "range [" + decimal(axis.low) + ":" +
         decimal(axis.high) + "]\nset " + name + "tics nomirror (";
  for (std::size_t i = 0; i < axis.tics.size(); ++i) {
    const Tic& tic = axis.tics[i];
    out += (i > 0 ? ", '" : "'") + tic.label + "' " + decimal(tic.at) +
           (tic.label.empty() ? " 1" : " 0");
  }
  return out + ")\n";
}

/// The points of a curve; a gap in the line where one cannot be drawn.
inline std::string data_block(const Panel& panel, const Curve& curve) {
  // A bar that has no end there, ends at its point; one that leaves a logarithmic axis, below it.
  const auto end_of_bar = [&](double end, double y) {
    const double value = within_reach(end);
    if (panel.log_y && value <= 0) return (std::numeric_limits<double>::min)();
    return std::isfinite(value) ? value : within_reach(y);
  };
  std::string out;
  bool gap = true;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const double y = curve.y[i];
    if (!drawable(panel, curve.x[i], y)) {
      if (!gap) out += "\n";
      gap = true;
      continue;
    }
    gap = false;
    out += decimal(within_reach(curve.x[i])) + " " + decimal(within_reach(y));
    if (has_bars(curve)) {
      out +=
          " " + decimal(end_of_bar(curve.low[i], y)) + " " + decimal(end_of_bar(curve.high[i], y));
    }
    out += "\n";
  }
  return out;
}

/// How a curve is drawn: colours that stay apart for colour-blind readers, most of them from
/// Okabe and Ito, "Color Universal Design" (2008), and a shape of point that differs as well.
inline std::string style(const Curve& curve, bool bars, std::size_t slot) {
  static constexpr std::array<std::string_view, 10> colours{
      "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
      "#56b4e9", "#000000", "#882255", "#999933", "#332288"};
  static constexpr std::array<int, 7> shapes{7, 5, 9, 13, 11, 15, 6};
  const std::string colour(curve.label.empty() ? "#707070" : colours[slot % colours.size()]);
  const std::string kind = curve.line ? (bars           ? "yerrorlines"
                                         : curve.points ? "linespoints"
                                                        : "lines")
                                      : (bars ? "yerrorbars" : "points");
  std::string out = "with " + kind + " linecolor rgb '" + colour + "' linewidth 1.8";
  if (kind != "lines") {
    out += " pointtype " + std::to_string(shapes[slot % shapes.size()]) +
           (curve.points ? "" : " pointsize 0");
  }
  return kind == "points" ? out : out + (curve.dashed ? " dashtype (8,5)" : " dashtype solid");
}

/// One curve per entry of the legend, with all the kinds of drawing that stand under its label.
inline std::vector<Curve> legend_of(const Figure& figure) {
  std::vector<Curve> entries;
  for (const Panel& panel : figure.panels) {
    for (const Curve& curve : panel.curves) {
      if (curve.label.empty()) continue;
      std::size_t i = 0;
      while (i < entries.size() && entries[i].label != curve.label) ++i;
      if (i == entries.size()) {
        entries.push_back({curve.label, {}, {}, {}, {}, curve.line, curve.points, curve.dashed});
        continue;
      }
      Curve& entry = entries[i];
      entry.dashed = entry.line && curve.line ? entry.dashed && curve.dashed
                                              : (entry.line ? entry : curve).dashed;
      entry.line = entry.line || curve.line;
      entry.points = entry.points || curve.points;
    }
  }
  return entries;
}

inline std::size_t slot_of(const std::vector<Curve>& legend, const std::string& label) {
  std::size_t i = 0;
  while (i < legend.size() && legend[i].label != label) ++i;
  return i;
}

inline std::string data_name(std::size_t panel, std::size_t curve) {
  return "$data_" + std::to_string(panel) + "_" + std::to_string(curve);
}

inline std::string panel_commands(const Panel& panel, std::size_t index,
                                  const std::vector<Curve>& legend) {
  std::string out = "set title " + gnuplot_text(panel.title) + " noenhanced\n";
  if (!has_points(panel)) {
    return out + "unset logscale\nunset tics\nset xlabel ''\nset ylabel ''\n" +
           "set label 1 'no point to draw' at graph 0.5,0.5 center\n" +
           "plot [0:1] [0:1] NaN notitle\nunset label 1\n";
  }
  out += axis_commands(panel, true) + axis_commands(panel, false);
  std::string plots;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    if (data_block(panel, curve).empty()) continue;
    if (!curve.line && !curve.points && !has_bars(curve)) continue;
    plots += (plots.empty() ? "plot " : ", \\\n  ") + data_name(index, i) + " notitle " +
             style(curve, has_bars(curve), slot_of(legend, curve.label));
  }
  return out + plots + "\n";
}

/// Where the parts of a figure are, in pixels.
struct Layout {
  std::size_t columns, panel_width, panel_height, title_height;
  std::size_t entries_per_row, legend_rows, legend_height;
  std::size_t width, height;

  Layout(const Figure& figure, const std::vector<Curve>& legend) {
    const std::size_t count = figure.panels.size();
    columns = count < 3 ? count : 3;
    panel_width = count == 1 ? 640 : count == 2 ? 520 : 440;
    panel_height = count == 1 ? 440 : 360;
    title_height = figure.title.empty() ? 0 : 36;
    std::size_t longest = 0;
    for (const Curve& entry : legend) {
      const std::size_t length = io::display_width(entry.label);
      if (length > longest) longest = length;
    }
    width = columns * panel_width;
    const std::size_t fit = width / (8 * longest + 70);
    entries_per_row = fit < 1 ? 1 : fit;
    legend_rows = (legend.size() + entries_per_row - 1) / entries_per_row;
    legend_height = legend.empty() ? 0 : 20 * legend_rows + 16;
    const std::size_t rows = (count + columns - 1) / columns;
    height = title_height + rows * panel_height + legend_height;
  }

  /// Puts the next plot into a rectangle, given from the top left.
  std::string place(std::size_t x, std::size_t y, std::size_t w, std::size_t h) const {
    const auto part = [](std::size_t a, std::size_t b) {
      return decimal(static_cast<double>(a) / static_cast<double>(b));
    };
    return "set origin " + part(x, width) + "," + part(height - y - h, height) + "\nset size " +
           part(w, width) + "," + part(h, height) + "\n";
  }
};

/// The numbers of all curves, as blocks that plots refer to.
inline std::string data_blocks(const Figure& figure) {
  std::string data;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    for (std::size_t j = 0; j < panel.curves.size(); ++j) {
      data += data_name(i, j) + " << END\n" + data_block(panel, panel.curves[j]) + "END\n";
    }
  }
  return data;
}

/// One legend for all panels: a plot of nothing.
inline std::string legend_commands(const std::vector<Curve>& legend, const Layout& at) {
  if (legend.empty()) return "";
  std::string plot =
      at.place(0, at.height - at.legend_height, at.width, at.legend_height) +
      "unset logscale\nunset border\nunset tics\nset title ''\nset xlabel ''\n"
      "set ylabel ''\nset margins 0,0,0,0\nset key center center Left reverse noenhanced "
      "samplen 3 maxcols " +
      std::to_string(at.entries_per_row) + " maxrows " + std::to_string(at.legend_rows) + "\n";
  for (std::size_t i = 0; i < legend.size(); ++i) {
    plot += (i == 0 ? "plot [0:1] [0:1] " : ", \\\n  ") + std::string("NaN title ") +
            gnuplot_text(legend[i].label) + " " + style(legend[i], false, i);
  }
  return plot + "\n";
}

}  // namespace detail

/// The commands with which gnuplot draws a figure to its standard output: as SVG, and after
/// it as PNG.
/// Requires: at least one panel, and curves that are not ragged.
inline std::string gnuplot_commands(const Figure& figure) {
  const std::vector<Curve> legend = detail::legend_of(figure);
  const detail::Layout at(figure, legend);
  std::string plots;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    plots += at.place(i % at.columns * at.panel_width,
                      at.title_height + i / at.columns * at.panel_height, at.panel_width,
                      at.panel_height);
    plots += detail::panel_commands(figure.panels[i], i, legend);
  }
  plots += detail::legend_commands(legend, at);

  // The two terminals differ in what they make of the same sizes.
  struct Terminal {
    std::string options, point_size, title_size;
  };
  const std::array<Terminal, 2> terminals{{
      {"svg font 'sans-serif,13' background rgb 'white'", "0.75", "16"},
      {"pngcairo font 'sans-serif,10' dashlength 1.6", "1.1", "12"},
  }};
  std::string out = "set encoding utf8\n" + detail::data_blocks(figure);
  for (const Terminal& terminal : terminals) {
    out += "set terminal " + terminal.options + " size " + std::to_string(at.width) + "," +
           std::to_string(at.height) + "\nset pointsize " + terminal.point_size +
           "\nset border 3\nset tics out\nset tmargin 3\n"
           "set grid linecolor rgb '#e4e4e4' linetype 1\nset multiplot";
    if (!figure.title.empty()) {
      out += " title " + detail::gnuplot_text(figure.title) + " noenhanced font '," +
             terminal.title_size + "'";
    }
    out += "\n" + plots + "unset multiplot\nset output\nreset\n";
  }
  return out;
}

}  // namespace scalewise::plot
