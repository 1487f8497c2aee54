// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The slopes of a coordinate check as a heat map: quantities against steps.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/coordinate_findings.hpp"
#include "check/experiment.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/plot/heat_map.hpp"

namespace scalewise::experiment {

namespace detail {

/// Where a slope has the full colour: the power of the width that most mistakes are off by.
inline constexpr double full_colour = 0.5;

/// How far a measured slope is from the predicted one, or from the nearer end of a predicted range.
/// Returns:  NaN where there is no slope, though one was predicted, or the other way round.
inline double off_by(const check::Judgement& j) {
  if (j.measured && !j.expected->band.is_zero()) {
    return check::distance(j.measured->slope, j.expected->band);
  }
  const bool both_zero = !j.measured && j.verdict == check::Verdict::pass;
  return both_zero ? 0 : std::numeric_limits<double>::quiet_NaN();
}

inline plot::HeatCell slope_cell(const check::Judgement& j) {
  const double off = off_by(j);
  const bool fails = j.verdict == check::Verdict::fail;
  std::string hover = fmt::format("{} of {} at step {}: {}, expected {}: {}",
                                  word(check::signal_words, j.curve.quantity.signal),
                                  j.curve.quantity.name, j.curve.step, measured_text(j),
                                  check::band_text(j.expected->band), to_string(j.verdict));
  return {off, std::move(hover), fails && std::isfinite(off) ? signed_text(off) : "", fails};
}

/// The worst cell of a row.
class RowNote {
 public:
  void add(const check::Judgement& j) {
    const double off = std::abs(off_by(j));
    const bool worse = j.verdict > verdict_ ||
                       (j.verdict == verdict_ && !(off <= std::abs(off_)));  // NaN is worst
    if (!worse) return;
    verdict_ = j.verdict;
    off_ = off_by(j);
  }

  bool fails() const { return verdict_ == check::Verdict::fail; }

  std::string text() const {
    if (verdict_ == check::Verdict::pass) return {};
    return std::string(fails() ? "FAIL" : "in doubt") +
           (std::isfinite(off_) ? " " + signed_text(off_) : "");
  }

 private:
  check::Verdict verdict_ = check::Verdict::pass;
  double off_ = 0;
};

/// One panel of a block.
struct SignalPanel {
  check::Signal signal;
  const char* title;
};

/// The judged slopes of some signals. A step at which a signal has none gets no column.
inline plot::HeatBlock slope_block(const check::Report& report, const std::string& title,
                                   const std::vector<SignalPanel>& signals) {
  plot::HeatBlock block{title, {}, {}};
  std::vector<std::string> names;
  for (const SignalPanel& signal : signals) {
    plot::HeatPanel panel{signal.title, {}};
    for (const check::Judgement& j : report.judgements) {
      if (j.curve.quantity.signal != signal.signal || !j.expected) continue;
      panel.columns.push_back(j.curve.step);
      names.push_back(j.curve.quantity.name);
    }
    std::sort(panel.columns.begin(), panel.columns.end());
    panel.columns.erase(std::unique(panel.columns.begin(), panel.columns.end()),
                        panel.columns.end());
    if (!panel.columns.empty()) block.panels.push_back(std::move(panel));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());

  for (const std::string& name : names) {
    plot::HeatRow row{name, {}};
    RowNote note;
    for (const SignalPanel& signal : signals) {
      for (const plot::HeatPanel& panel : block.panels) {
        if (panel.title != signal.title) continue;
        for (const long step : panel.columns) {
          const check::Judgement* j = find(report, signal.signal, name, step);
          row.cells.emplace_back();
          if (j == nullptr || !j->expected) continue;
          row.cells.back() = slope_cell(*j);
          note.add(*j);
        }
      }
    }
    row.note = note.text();
    row.marked = note.fails();
    block.rows.push_back(std::move(row));
  }
  return block;
}

/// "maximal-update: pass, 124 of 124 slopes as predicted"; "…: fail in 24 of 124 slopes".
inline std::string slope_title(const Experiment& e, const Findings& found) {
  std::size_t judged = 0;
  std::size_t failed = 0;
  std::size_t open = 0;
  for (const check::Judgement& j : found.report.judgements) {
    if (!j.expected) continue;
    ++judged;
    failed += j.verdict == check::Verdict::fail ? 1 : 0;
    open += j.verdict == check::Verdict::inconclusive ? 1 : 0;
  }
  const check::Verdict verdict = found.report.verdict;
  const std::string title = e.model.rule + (found.mistake.empty() ? "" : " " + found.mistake) +
                            ": " + std::string(to_string(verdict));
  if (judged == 0) return title + ", no slope was judged";
  if (failed > 0 && verdict == check::Verdict::fail) {
    return title + fmt::format(" in {} of {} slopes", failed, judged);
  }
  return title + fmt::format(", {} of {} slopes as predicted", judged - open - failed, judged);
}

}  // namespace detail

/// Measured slopes minus predicted ones.
inline plot::HeatMap slope_map(const Experiment& e, const Findings& found) {
  using check::Signal;
  plot::HeatMap map;
  map.title = detail::slope_title(e, found);
  map.subtitle = fmt::format(
      "{}: slopes of log(root mean square) against log({}), measured minus predicted. Columns are "
      "training steps.",
      optimizer_name(e), axis_name(e));
  for (plot::HeatBlock& block :
       std::vector{detail::slope_block(found.report, "Activations",
                                       {{Signal::value, "values"}, {Signal::change, "changes"}}),
                   detail::slope_block(found.report, "Tensors",
                                       {{Signal::parameter, "parameters"},
                                        {Signal::gradient, "gradients"},
                                        {Signal::update, "updates"}})}) {
    if (!block.rows.empty()) map.blocks.push_back(std::move(block));
  }
  map.scale = {
      detail::full_colour,
      {{-0.5, "-0.5"}, {-0.25, "-0.25"}, {0, "0"}, {0.25, "+0.25"}, {0.5, "+0.5"}},
      "outside the prediction; full colour from half a power on. A frame: the slope fails."};
  map.lines = {
      "Frames are what the check decides. It knows the error of each slope and how exact each "
      "prediction is, so that strong colours can pass and pale ones fail; and it fails changes "
      "that "
      "grow even where the rule lets them.",
      "No cell: not predicted. Grey: no slope where one was predicted, or one where zero was."};
  return map;
}

}  // namespace scalewise::experiment
