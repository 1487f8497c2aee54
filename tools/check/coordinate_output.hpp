// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The findings of a coordinate check as text, JSON, pictures and a page.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/coordinate_findings.hpp"
#include "check/coordinate_map.hpp"
#include "check/coordinate_page.hpp"
#include "check/experiment.hpp"
#include "check/html.hpp"
#include "check/report.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/check/two_widths.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/line_file.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/numeric/exact_text.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

/// The last step that was recorded.
inline long last_step(const check::Report& report) {
  long last = 1;
  for (const check::Judgement& j : report.judgements) last = std::max(last, j.curve.step);
  return last;
}

/// The first step that was judged: one that moved something.
inline long first_step(const check::Report& report) {
  long first = last_step(report);
  for (const check::Judgement& j : report.judgements) {
    if (j.curve.step > 0) first = std::min(first, j.curve.step);
  }
  return first;
}

/// Activations: how they start and what training has added after the first and the last step.
inline Table slope_table(const check::Report& report) {
  Table table{{}, {"activation", "at initialization", "expected"}, {}};
  std::vector<long> changes{first_step(report)};
  if (last_step(report) > changes.front()) changes.push_back(last_step(report));
  for (const long step : changes) {
    table.header.push_back("change, step " + std::to_string(step));
    table.header.emplace_back("expected");
  }
  const auto add = [&](std::vector<std::string>& row, const check::Judgement* j) {
    const bool judged = j != nullptr && j->expected;
    const char* mark = !judged || j->verdict == check::Verdict::pass ? ""
                       : j->verdict == check::Verdict::fail          ? "  FAIL"
                                                                     : "  ?";
    row.push_back(j == nullptr ? "-" : measured_text(*j) + mark);
    row.push_back(judged ? check::band_text(j->expected->band) : "-");
  };
  for (const check::Judgement& j : report.judgements) {
    if (j.curve.quantity.signal != check::Signal::value || j.curve.step != 0 || !j.expected)
      continue;
    std::vector<std::string> row{j.curve.quantity.name};
    add(row, &j);
    for (const long step : changes) {
      add(row, find(report, check::Signal::change, j.curve.quantity.name, step));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// How many of each signal passed, and the first few that did not.
inline std::string counts_text(const check::Report& report) {
  std::string text;
  for (const auto& [signal, name] : check::signal_words) {
    std::size_t judged = 0;
    std::size_t passed = 0, failed = 0;
    for (const check::Judgement& j : report.judgements) {
      if (j.curve.quantity.signal != signal || !j.expected) continue;
      ++judged;
      if (j.verdict == check::Verdict::pass) ++passed;
      if (j.verdict == check::Verdict::fail) ++failed;
    }
    if (judged == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + "s " + std::to_string(passed) +
            " of " + std::to_string(judged) +
            (failed > 0 ? " (" + std::to_string(failed) + " failed)" : "");
  }
  text = "passed at all steps: " + text + "\n";
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const check::Judgement& j : report.judgements) {
    const bool parameter = j.curve.quantity.signal == check::Signal::gradient ||
                           j.curve.quantity.signal == check::Signal::update;
    if (!parameter || j.verdict != check::Verdict::fail || shown++ >= most) continue;
    text += "  " + std::string(word(check::signal_words, j.curve.quantity.signal)) + " of " +
            j.curve.quantity.name + " at step " + std::to_string(j.curve.step) + ": " +
            measured_text(j) + ", " + j.reason + "\n";
  }
  if (shown > most)
    text += "  and " + std::to_string(shown - most) + " more gradients and updates\n";
  return text;
}

inline std::string two_widths_text(const check::TwoWidths& t) {
  if (t.modules == 0) return {};
  std::string line = fmt::format(
      "by the criterion of microsoft/mup (mean |x| at {} and {} within a factor of 1.2): {} of {}",
      t.smaller, t.larger, t.met, t.modules);
  if (!t.worst.empty()) {
    line += fmt::format("; furthest from 1: {:.3g} ({}, step {})", t.worst_ratio, t.worst,
                        t.worst_step);
  }
  return line;
}

/// How many runs there are of each size; a check may have added a size to those that were asked for.
inline std::map<long, long> seeds_by_size(const check::Records& records) {
  std::map<long, long> seeds;
  for (const check::Run& run : records.runs()) ++seeds[run.size];
  return seeds;
}

inline std::string runs_text(const Experiment& e, const Findings& found,
                             const std::map<long, long>& seeds) {
  std::vector<std::string> sizes;
  for (const auto& [size, count] : seeds) {
    sizes.push_back(fmt::format("{} of {} {}", count, axis_name(e), size));
  }
  return fmt::format(
      "{} runs ({}); a correct set-up fails by chance in less than {:.2g} % of such checks",
      found.runs, fmt::join(sizes, ", "), 100 * found.report.error_rate);
}

inline nlohmann::ordered_json to_json(const check::Judgement& j) {
  nlohmann::ordered_json item{{"signal", word(check::signal_words, j.curve.quantity.signal)},
                              {"name", j.curve.quantity.name},
                              {"step", j.curve.step}};
  item["slope"] = j.measured ? nlohmann::ordered_json(j.measured->slope) : nullptr;
  item["error"] = j.measured ? nlohmann::ordered_json(j.measured->error) : nullptr;
  // null: not predicted; "zero": exactly zero
  if (!j.expected) {
    item["expected"] = nullptr;
  } else if (j.expected->band.is_zero()) {
    item["expected"] = "zero";
  } else {
    item["expected"] = {j.expected->band.low, j.expected->band.high};
  }
  item["regime"] =
      j.expected ? nlohmann::ordered_json(word(check::regime_words, j.expected->regime)) : nullptr;
  item["deviation"] = std::isfinite(j.farthest()) ? nlohmann::ordered_json(j.farthest()) : nullptr;
  item["verdict"] = j.expected ? nlohmann::ordered_json(to_string(j.verdict)) : nullptr;
  item["reason"] = j.reason;
  auto& points = item["points"] = nlohmann::ordered_json::array();
  for (const check::SizePoint& point : j.curve.points) {
    points.push_back({{"size", point.size},
                      {"mean_log_rms", point.mean},
                      {"deviation", point.deviation()},
                      {"runs", point.runs}});
  }
  return item;
}

inline nlohmann::ordered_json to_json(const Experiment& e, const Findings& found,
                                      const std::map<long, long>& all_seeds,
                                      const check::TwoWidths& widths,
                                      const frame::Options& options) {
  nlohmann::ordered_json json = begin_report("coordinate_check", 2, options);
  json.update({{"rule", e.model.rule},
               {"optimizer", optimizer_name(e)},
               {"axis", axis_name(e)},
               {"sizes", nlohmann::ordered_json::array()},
               {"steps", e.model.steps},
               {"rate", e.model.rate > 0 ? nlohmann::ordered_json(e.model.rate) : nullptr},
               {"verdict", to_string(found.report.verdict)},
               {"diagnosis", found.report.diagnosis},
               {"optimizer_differences", found.optimizer}});
  for (const auto& [size, seeds] : all_seeds) {
    json["sizes"].push_back({{"size", size}, {"seeds", seeds}});
  }
  json["two_widths"] = {{"small", widths.smaller},
                        {"large", widths.larger},
                        {"modules", widths.modules},
                        {"met", widths.met},
                        {"worst", widths.worst},
                        {"worst_step", widths.worst_step},
                        {"worst_ratio", widths.worst_ratio}};
  const check::Report& r = found.report;
  json["runs"] = found.runs;
  if (!found.judged.empty()) json["judged"] = io::inputs_json(found.judged);
  if (!found.other_model.empty()) json["judged_as_another_model"] = found.other_model;
  json["fault"] = found.mistake;
  json["cause"] = word(check::cause_words, r.cause);
  json["log10_odds"] = r.log10_odds;
  json["error_rate"] = r.error_rate;
  json["threshold"] = r.thresholds.failure;
  json["doubt_threshold"] = r.thresholds.doubt;
  json["unknown"] = r.unknown;
  json["left_out"] = r.left_out;
  json["missing"] = r.missing;
  json["unchecked"] = r.unchecked;
  json["undecided"] = r.undecided;
  auto& all = json["quantities"] = nlohmann::ordered_json::array();
  for (const check::Judgement& j : found.report.judgements) {
    all.push_back(to_json(j));
  }
  return json;
}

/// The same findings for all that shows them.
inline Shown shown(const Experiment& e, const Findings& found, const frame::Options& options) {
  const std::map<long, long> seeds = seeds_by_size(found.records);
  const check::TwoWidths widths = check::two_widths(found.records);
  return {slope_table(found.report), counts_text(found.report), two_widths_text(widths),
          runs_text(e, found, seeds), to_json(e, found, seeds, widths, options)};
}

/// A row for each quantity and step, with all digits.
inline Table quantity_table(const check::Report& report) {
  Table table{{},
              {"signal", "name", "step", "slope", "error", "expected_low", "expected_high",
               "deviation", "verdict", "reason"},
              {}};
  const auto text = [](double x) { return std::isfinite(x) ? numeric::exact_text(x) : ""; };
  for (const check::Judgement& j : report.judgements) {
    const bool banded = j.expected && !j.expected->band.is_zero();
    table.rows.push_back(
        {std::string(word(check::signal_words, j.curve.quantity.signal)), j.curve.quantity.name,
         std::to_string(j.curve.step), j.measured ? text(j.measured->slope) : "",
         j.measured ? text(j.measured->error) : "", banded ? text(j.expected->band.low) : "",
         banded ? text(j.expected->band.high) : "", text(j.farthest()),
         j.expected ? std::string(to_string(j.verdict)) : "", j.reason});
  }
  return table;
}

inline void print(const Experiment& e, const Findings& found, const Shown& show) {
  if (e.format == frame::Format::json) {
    fmt::print("{}\n", show.json.dump(1));
    return;
  }
  if (e.format == frame::Format::csv) {  // the verdict apart, so that programs can read the rest
    fmt::print("{}", render(quantity_table(found.report), TableFormat::csv));
    fmt::print(stderr, "verdict: {}\n", to_string(found.report.verdict));
    return;
  }
  fmt::print("{}\n{}{}\n", io::render_to_fit(show.slopes, frame::terminal_columns()), show.counts,
             show.two_widths);
  if (!found.optimizer.empty())
    fmt::print("{}; the first: {}\n", optimizer_text(found), found.optimizer.front());
  const auto list = [](const char* what, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) fmt::print("{}: {}\n", what, line);
  };
  list("not judged", found.report.unknown);
  list("not judged", found.report.left_out);
  list("missing", found.report.missing);
  list("open", found.report.undecided);
  if (!found.report.unchecked.empty()) fmt::print("{}\n", unchecked_text(found.report));
  fmt::print("{}\n", show.runs);
  if (!found.report.diagnosis.empty()) fmt::print("{}\n", found.report.diagnosis);
  fmt::print("verdict: {}\n", painted(found.report.verdict));
}

/// The curve of one judgement: means over seeds of the logarithm, with two standard deviations.
inline plot::Curve measured_curve(const check::Judgement& j) {
  plot::Curve curve;
  curve.label = "step " + std::to_string(j.curve.step);
  for (const check::SizePoint& point : j.curve.points) {
    curve.x.push_back(static_cast<double>(point.size));
    curve.y.push_back(std::exp(point.mean));
    curve.low.push_back(std::exp(point.mean - 2 * point.deviation()));
    curve.high.push_back(std::exp(point.mean + 2 * point.deviation()));
  }
  return curve;
}

/// Lines of the expected slopes through the first point.
inline std::vector<plot::Curve> expected_curves(const check::Judgement& j,
                                                const plot::Curve& measured) {
  std::vector<plot::Curve> curves;
  if (!j.expected || j.expected->band.is_zero() || measured.x.empty()) return curves;
  const check::Band& band = j.expected->band;
  for (const double slope : {band.low, band.high}) {
    plot::Curve line;
    line.points = false;
    line.dashed = true;
    line.label = "expected " + check::slope_text(slope);
    for (const double x : {measured.x.front(), measured.x.back()}) {
      line.x.push_back(x);
      line.y.push_back(measured.y.front() * std::pow(x / measured.x.front(), slope));
    }
    curves.push_back(line);
    if (band.low == band.high) break;
  }
  return curves;
}

inline plot::Figure figure_of(const Experiment& e, const Findings& found) {
  using check::Signal;
  plot::Figure figure;
  figure.title = e.model.rule + ", " + optimizer_name(e) +
                 (found.mistake.empty() ? "" : ", " + found.mistake) + ": " +
                 std::string(to_string(found.report.verdict));
  const std::array<std::pair<Signal, const char*>, 6> panels{{{Signal::value, "attention.output"},
                                                              {Signal::value, "mlp.output"},
                                                              {Signal::value, "logits"},
                                                              {Signal::change, "attention.output"},
                                                              {Signal::change, "mlp.output"},
                                                              {Signal::change, "logits"}}};
  const long last = last_step(found.report);
  for (const auto& [signal, name] : panels) {
    plot::Panel panel;
    panel.title = std::string(name) + (signal == Signal::change ? ", change since step 0" : "");
    panel.x_label = axis_name(e);
    panel.y_label = "root mean square";
    panel.log_x = panel.log_y = true;
    for (const check::Judgement& j : found.report.judgements) {
      if (j.curve.quantity.signal != signal || j.curve.quantity.name != name) continue;
      if (j.curve.step != 0 && j.curve.step != 1 && j.curve.step != last) continue;
      const plot::Curve curve = measured_curve(j);
      panel.curves.push_back(curve);
      if (j.curve.step != last && !(signal == Signal::value && j.curve.step == 0)) continue;
      for (plot::Curve& line : expected_curves(j, curve)) panel.curves.push_back(line);
    }
    if (!panel.curves.empty()) figure.panels.push_back(panel);
  }
  return figure;
}

/// coordinate_check.json, .csv, .svg, .png and .html in a folder, and coordinate_check_slopes.svg.
inline void write(const Experiment& e, const Findings& found, const Shown& show,
                  const frame::Options& options) {
  const frame::Uninterrupted now;
  const std::string stem = e.out + "/coordinate_check";
  files::write_file(stem + ".json", show.json.dump(1) + "\n");
  const plot::Figure figure = figure_of(e, found);
  const plot::Drawing drawing = plot::draw_figure(figure);
  const std::string message = plot::write_figure(figure, stem, drawing);
  const std::string slopes = plot::heat_map_svg(slope_map(e, found));
  files::write_file(stem + "_slopes.svg", slopes);
  files::write_file(stem + ".html",
                    html(coordinate_page(e, found, show, slopes, drawing, options)));
  if (!frame::quiet || !drawing.problem.empty()) std::cerr << message << '\n';
  if (!frame::quiet) std::cerr << "wrote " << stem << "_slopes.svg and " << stem << ".html\n";
}

}  // namespace scalewise::experiment
