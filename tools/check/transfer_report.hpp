// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a sweep over learning rates has shown, as text, JSON and a picture.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

/// A sweep and what it means.
struct TransferReport {
  std::vector<check::RateRun> runs;
  check::Transfer transfer;
  check::TransferVerdict judged;
};

inline std::string digits(double value, const char* format = "{:.3g}") {
  if (!std::isfinite(value)) return "-";
  return fmt::format(fmt::runtime(format), value);
}

inline double rate_of(const Experiment& e, double octave) {
  return e.model.rate * std::exp2(octave);
}

/// One row per size; `e.axis` heads the sizes.
inline Table transfer_table(const Experiment& e, const check::Transfer& transfer) {
  Table table;
  table.header = {e.axis, "optimal rate", "95 % interval", "lowest loss", "regret %", "± 2 SEM"};
  for (const check::SizeTransfer& size : transfer.sizes) {
    const bool one_seed = !std::isfinite(size.optimum.low);
    const std::string interval =
        digits(rate_of(e, size.optimum.low)) + " to " + digits(rate_of(e, size.optimum.high));
    const bool diverged = !std::isfinite(size.regret);
    table.rows.push_back({std::to_string(size.size),
                          size.interior ? digits(rate_of(e, size.optimum.value)) : "at the edge",
                          one_seed || !size.interior ? "-" : interval, digits(size.loss, "{:.4f}"),
                          diverged ? "diverged" : digits(100 * size.regret / size.loss, "{:.2f}"),
                          digits(200 * size.regret_error / size.loss, "{:.2f}")});
  }
  return table;
}

inline nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

/// What is not finite is null: an interval from one seed, the loss of a diverged run.
inline nlohmann::ordered_json transfer_json(const Experiment& e, const TransferReport& report,
                                            const frame::Options& options) {
  using Json = nlohmann::ordered_json;
  const check::IntervalEstimate& drift = report.transfer.drift;
  Json json{{"schema", "scalewise.learning_rate_transfer/1"},
            {"settings", options.settings()},
            {"rule", e.model.rule},
            {"optimizer", e.model.optimizer},
            {"axis", e.axis},
            {"seeds", e.seeds},
            {"verdict", check::to_string(report.judged.verdict)},
            {"reason", report.judged.reason},
            {"drift",
             {{"value", number(drift.value)},
              {"low", number(drift.low)},
              {"high", number(drift.high)},
              {"expected", report.transfer.expected},
              {"tolerance", check::drift_tolerance}}}};
  for (const check::SizeTransfer& size : report.transfer.sizes) {
    json["sizes"].push_back(
        {{"size", size.size},
         {"interior", size.interior},
         {"rate", number(rate_of(e, size.optimum.value))},
         {"low", number(rate_of(e, size.optimum.low))},
         {"high", number(rate_of(e, size.optimum.high))},
         {"best_rate", rate_of(e, static_cast<double>(size.best))},
         {"loss", number(size.loss)},
         {"transferred_rate", rate_of(e, static_cast<double>(size.transferred))},
         {"regret", number(size.regret)},
         {"regret_error", size.regret_error}});
  }
  for (const check::RateRun& run : report.runs) {
    json["runs"].push_back({{"size", run.size},
                            {"rate", run.rate(e.model.rate)},
                            {"seed", run.seed},
                            {"loss", number(run.loss)}});
  }
  return json;
}

/// Loss against rate, and optimal rate against size.
inline plot::Figure transfer_figure(const Experiment& e, const TransferReport& report) {
  plot::Curve lowest;
  lowest.label = "optimum";
  lowest.line = false;
  std::vector<plot::Curve> losses;
  for (const check::RateCurve& curve : check::rate_curves(report.runs)) {
    plot::Curve line;
    line.label = e.axis + " " + std::to_string(curve.size);
    std::vector<std::size_t> all;
    for (std::size_t s = 0; s < curve.losses.front().size(); ++s) all.push_back(s);
    const std::vector<double> means = check::mean_losses(curve, all);
    for (std::size_t r = 0; r < means.size(); ++r) {
      if (!std::isfinite(means[r])) continue;
      line.x.push_back(rate_of(e, static_cast<double>(curve.first) + static_cast<double>(r)));
      line.y.push_back(means[r]);
    }
    losses.push_back(line);
  }
  plot::Curve measured;
  measured.label = "measured, 95 % interval";
  plot::Curve expected;
  expected.label = "transfer";
  expected.points = false;
  expected.dashed = true;
  for (const check::SizeTransfer& size : report.transfer.sizes) {
    if (!size.interior) continue;
    lowest.x.push_back(rate_of(e, size.optimum.value));
    lowest.y.push_back(size.optimum_loss);
    measured.x.push_back(static_cast<double>(size.size));
    measured.y.push_back(rate_of(e, size.optimum.value));
    expected.x.push_back(measured.x.back());
    expected.y.push_back(measured.y.front());
    if (!std::isfinite(size.optimum.low)) continue;
    measured.low.push_back(rate_of(e, size.optimum.low));
    measured.high.push_back(rate_of(e, size.optimum.high));
  }
  losses.push_back(lowest);
  return {e.model.rule + ", " + e.model.optimizer,
          {{"final loss", "rate", "nats", true, false, losses},
           {"optimal rate", e.axis, "rate", true, true, {measured, expected}}}};
}

}  // namespace scalewise::experiment
