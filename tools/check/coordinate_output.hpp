// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a coordinate check has found, as a table, JSON and pictures.
#pragma once

#include <fmt/core.h>

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

#include "check/experiment.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/check/two_widths.hpp"
#include "scalewise/files/file.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

struct Findings {
  check::Records records;
  check::Report report;
  std::string mistake;                 // that was made to see the check fail
  std::vector<std::string> optimizer;  // what the read-back of rates, decay and epsilon found
};

inline std::string signed_text(double x) { return fmt::format("{:+.2f}", x == 0 ? 0 : x); }

inline std::string measured_text(const check::Judgement& j) {
  if (!j.measured) return j.reason.empty() || j.expected ? "zero" : "-";
  return fmt::format("{} ± {:.2f}", signed_text(j.measured->slope), j.measured->error);
}

/// The judgement of a quantity at a step, or null.
inline const check::Judgement* find(const check::Report& report, check::Signal signal,
                                    const std::string& name, long step) {
  for (const check::Judgement& j : report.judgements) {
    if (j.quantity == check::Quantity{signal, name} && j.step == step) return &j;
  }
  return nullptr;
}

/// Activations: how they start and what training has added after the first and the last step.
inline Table slope_table(const check::Report& report, long steps) {
  Table table{{}, {"activation", "at the start", "expected"}, {}};
  std::vector<long> changes{1};
  if (steps > 1) changes.push_back(steps);
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
    row.push_back(judged ? check::band_text(*j->expected) : "-");
  };
  for (const check::Judgement& j : report.judgements) {
    if (j.quantity.signal != check::Signal::value || j.step != 0 || !j.expected) continue;
    std::vector<std::string> row{j.quantity.name};
    add(row, &j);
    for (const long step : changes) {
      add(row, find(report, check::Signal::change, j.quantity.name, step));
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
    std::size_t passed = 0;
    for (const check::Judgement& j : report.judgements) {
      if (j.quantity.signal != signal || !j.expected) continue;
      ++judged;
      if (j.verdict == check::Verdict::pass) ++passed;
    }
    if (judged == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(name) + "s " + std::to_string(passed) +
            " of " + std::to_string(judged);
  }
  text = "passed at all steps: " + text + "\n";
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const check::Judgement& j : report.judgements) {
    const bool parameter =
        j.quantity.signal == check::Signal::gradient || j.quantity.signal == check::Signal::update;
    if (!parameter || j.verdict != check::Verdict::fail || shown++ >= most) continue;
    text += "  " + std::string(word(check::signal_words, j.quantity.signal)) + " of " +
            j.quantity.name + " at step " + std::to_string(j.step) + ": " + measured_text(j) +
            ", " + j.reason + "\n";
  }
  if (shown > most)
    text += "  and " + std::to_string(shown - most) + " more gradients and updates\n";
  return text;
}

inline std::string two_widths_text(const check::Records& records) {
  const check::TwoWidths t = check::two_widths(records);
  if (t.modules == 0) return {};
  std::string line = fmt::format(
      "by the criterion of microsoft/mup (mean |x| at {} and {} within a factor of 1.2): {} of {}",
      t.smaller, t.larger, t.met, t.modules);
  if (!t.worst.empty()) {
    line += fmt::format("; farthest {}, {:.3g} at step {}", t.worst, t.worst_ratio, t.worst_step);
  }
  return line;
}

inline nlohmann::ordered_json to_json(const Experiment& e, const Findings& found,
                                      const frame::Options& options) {
  nlohmann::ordered_json json{{"schema", "scalewise.coordinate_check/1"},
                              {"settings", options.settings()},
                              {"rule", e.model.rule},
                              {"optimizer", e.model.optimizer},
                              {"axis", e.axis},
                              {"sizes", e.sizes},
                              {"seeds", e.seeds},
                              {"steps", e.model.steps},
                              {"rate", e.model.rate},
                              {"verdict", to_string(found.report.verdict)},
                              {"diagnosis", found.report.diagnosis},
                              {"optimizer_differences", found.optimizer}};
  const check::TwoWidths t = check::two_widths(found.records);
  json["two_widths"] = {{"small", t.smaller},
                        {"large", t.larger},
                        {"modules", t.modules},
                        {"met", t.met},
                        {"worst", t.worst},
                        {"worst_step", t.worst_step},
                        {"worst_ratio", t.worst_ratio}};
  if (!found.report.unknown.empty()) json["unknown"] = found.report.unknown;
  auto& all = json["quantities"] = nlohmann::ordered_json::array();
  for (const check::Judgement& j : found.report.judgements) {
    nlohmann::ordered_json item{{"signal", word(check::signal_words, j.quantity.signal)},
                                {"name", j.quantity.name},
                                {"step", j.step}};
    item["slope"] = j.measured ? nlohmann::ordered_json(j.measured->slope) : nullptr;
    item["error"] = j.measured ? nlohmann::ordered_json(j.measured->error) : nullptr;
    // null: not predicted; "zero": exactly zero
    if (!j.expected) {
      item["expected"] = nullptr;
    } else if (j.expected->is_zero()) {
      item["expected"] = "zero";
    } else {
      item["expected"] = {j.expected->low, j.expected->high};
    }
    item["verdict"] = j.expected ? nlohmann::ordered_json(to_string(j.verdict)) : nullptr;
    item["reason"] = j.reason;
    item["sizes"] = j.sizes;
    item["rms"] = j.values;
    all.push_back(std::move(item));
  }
  return json;
}

inline void print(const Experiment& e, const Findings& found, const frame::Options& options) {
  if (e.format == "json") {
    fmt::print("{}\n", to_json(e, found, options).dump(1));
    return;
  }
  fmt::print("{}\n{}{}\n", render(slope_table(found.report, e.model.steps), TableFormat::text),
             counts_text(found.report), two_widths_text(found.records));
  if (!found.optimizer.empty()) {
    fmt::print("the optimizer is not set as the plan says, in {} places; the first: {}\n",
               found.optimizer.size(), found.optimizer.front());
  }
  for (const std::string& name : found.report.unknown) fmt::print("not judged: {}\n", name);
  if (!found.report.diagnosis.empty()) fmt::print("{}\n", found.report.diagnosis);
  fmt::print("verdict: {}\n", to_string(found.report.verdict));
}

/// The curve of one judgement: means over seeds, with the range.
inline plot::Curve measured_curve(const check::Judgement& j) {
  std::map<double, std::vector<double>> by_size;
  for (std::size_t i = 0; i < j.sizes.size(); ++i) by_size[j.sizes[i]].push_back(j.values[i]);
  plot::Curve curve;
  curve.label = "step " + std::to_string(j.step);
  for (const auto& [size, values] : by_size) {
    double log_sum = 0;
    for (const double v : values) log_sum += std::log(v);
    curve.x.push_back(size);
    curve.y.push_back(std::exp(log_sum / static_cast<double>(values.size())));
    curve.low.push_back(*std::min_element(values.begin(), values.end()));
    curve.high.push_back(*std::max_element(values.begin(), values.end()));
  }
  return curve;
}

/// Lines of the expected slopes through the first point.
inline std::vector<plot::Curve> expected_curves(const check::Judgement& j,
                                                const plot::Curve& measured) {
  std::vector<plot::Curve> curves;
  if (!j.expected || j.expected->is_zero() || measured.x.empty()) return curves;
  for (const double slope : {j.expected->low, j.expected->high}) {
    plot::Curve line;
    line.points = false;
    line.dashed = true;
    line.label = "expected " + check::slope_text(slope);
    for (const double x : {measured.x.front(), measured.x.back()}) {
      line.x.push_back(x);
      line.y.push_back(measured.y.front() * std::pow(x / measured.x.front(), slope));
    }
    curves.push_back(line);
    if (j.expected->low == j.expected->high) break;
  }
  return curves;
}

inline plot::Figure figure_of(const Experiment& e, const Findings& found) {
  using check::Signal;
  plot::Figure figure;
  figure.title = e.model.rule + ", " + e.model.optimizer +
                 (found.mistake.empty() ? "" : ", " + found.mistake) + ": " +
                 std::string(to_string(found.report.verdict));
  const std::array<std::pair<Signal, const char*>, 6> panels{{{Signal::value, "attention.output"},
                                                              {Signal::value, "mlp.output"},
                                                              {Signal::value, "logits"},
                                                              {Signal::change, "attention.output"},
                                                              {Signal::change, "mlp.output"},
                                                              {Signal::change, "logits"}}};
  for (const auto& [signal, name] : panels) {
    plot::Panel panel;
    panel.title = std::string(name) + (signal == Signal::change ? ", change since step 0" : "");
    panel.x_label = e.axis;
    panel.y_label = "root mean square";
    panel.log_x = panel.log_y = true;
    for (const check::Judgement& j : found.report.judgements) {
      if (j.quantity.signal != signal || j.quantity.name != name) continue;
      if (j.step != 0 && j.step != 1 && j.step != e.model.steps) continue;
      const plot::Curve curve = measured_curve(j);
      panel.curves.push_back(curve);
      if (j.step != e.model.steps && !(signal == Signal::value && j.step == 0)) continue;
      for (plot::Curve& line : expected_curves(j, curve)) panel.curves.push_back(line);
    }
    if (!panel.curves.empty()) figure.panels.push_back(panel);
  }
  return figure;
}

/// coordinate_check.json, .csv, .svg and .png in a folder.
inline void write(const Experiment& e, const Findings& found, const frame::Options& options) {
  const frame::Uninterrupted now;
  const std::string stem = e.out + "/coordinate_check";
  write_file(stem + ".json", to_json(e, found, options).dump(1) + "\n");
  const std::string message = plot::write_figure(figure_of(e, found), stem);
  if (!frame::quiet()) std::cerr << message << '\n';
}

}  // namespace scalewise::experiment
