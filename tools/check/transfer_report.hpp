// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The result of a sweep over learning rates or weight decays as text, JSON and a picture.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "check/report.hpp"
#include "check/transfer_runs.hpp"
#include "frame/program.hpp"
#include "scalewise/check/judge_transfer.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

/// The names that a report uses for a sweep.
struct SweepSubject {
  std::string title;                     // of pictures and of the text
  std::string axis;                      // the name of a size
  std::string tuned;                     // the tuned hyperparameter, in words,
  std::string tuned_name;                // in full,
  std::string tuned_key;                 // and as a key of JSON
  double centre = 1;                     // its value at octave 0
  std::string unit = {};                 // of losses, on the axis of a picture
  std::vector<std::string> check = {};   // arguments of coordinate_check; none: no known rule
  nlohmann::ordered_json origin = {};    // members of the report in JSON: what was swept
  bool of_table = false;                 // no runs of ours: a page shows the options of tables only
  nlohmann::ordered_json compared = {};  // with another sweep; null: with none

  double at(double octave) const { return centre * std::exp2(octave); }
};

/// A sweep and what it means.
struct TransferReport {
  std::vector<check::RateRun> runs = {};
  check::Transfer transfer = {};
  check::TransferVerdict judged = {};
  double budget = 0;            // in seconds; 0: none
  double seconds = 0;           // that this process took
  double expected_seconds = 0;  // before the first run; 0: not asked for
  double more_seconds = 0;      // that the runs would take which the verdict asks for; 0: not known
};

inline std::string digits(double value, const char* format = "{:.3g}") {
  if (!std::isfinite(value)) return "-";
  return fmt::format(fmt::runtime(format), value);
}

inline SweepSubject subject_of(const Experiment& e) {
  const bool decay = tunes_decay(e);
  return {e.model.rule + ", " + optimizer_name(e),
          size_name(e),
          decay ? "weight decay" : "rate",
          decay ? "weight decay" : "learning rate",
          decay ? "weight_decay" : "rate",
          centre(e),
          "nats",
          {},
          {{"rule", e.model.rule},
           {"optimizer", optimizer_name(e)},
           {"axis", axis_name(e)},
           {"tuned", word(tuning_words, e.tuned)}}};
}

inline std::string used_text(const TransferReport& report) {
  const std::string runs = std::to_string(report.runs.size()) + " runs";
  if (report.budget == 0) return runs;
  return runs + ", " + digits(report.seconds) + " of " + digits(report.budget) + " s";
}

inline std::string more_text(const TransferReport& report) {
  return report.more_seconds == 0 ? ""
                                  : ", about " + digits(report.more_seconds, "{:.2g}") + " s more";
}

/// One row per size.
inline Table transfer_table(const SweepSubject& s, const check::Transfer& transfer) {
  Table table;
  table.header = {s.axis, "seeds",    "optimal " + s.tuned, "95 % interval",
                  "loss", "regret %", "95 % interval"};
  for (const check::SizeTransfer& size : transfer.sizes) {
    const check::IntervalEstimate& at = size.optimum;
    const std::string rates = digits(s.at(at.low)) + " to " + digits(s.at(at.high));
    const auto percent = [&](double regret) { return digits(100 * regret / size.loss, "{:.2f}"); };
    const bool diverged = std::isinf(size.regret.value);
    const bool first = size.regret.low == 0 && size.regret.high == 0;
    const bool known = std::isfinite(size.regret.low) && !first;
    table.rows.push_back(
        {std::to_string(size.size), std::to_string(size.seeds),
         size.interior ? digits(s.at(at.value)) : "not judged", size.interior ? rates : "-",
         digits(size.loss, "{:.4f}"),
         diverged        ? "diverged"
         : size.interior ? percent(size.regret.value)
                         : "-",
         known ? percent(size.regret.low) + " to " + percent(size.regret.high) : "-"});
  }
  return table;
}

inline nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

inline nlohmann::ordered_json interval(const check::IntervalEstimate& e) {
  return {{"value", number(e.value)}, {"low", number(e.low)}, {"high", number(e.high)}};
}

inline nlohmann::ordered_json size_json(const SweepSubject& s, const check::SizeTransfer& size) {
  const auto rate = [&](double octave) {
    return std::isfinite(octave) ? number(s.at(octave)) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json{{"size", size.size},
                              {"seeds", size.seeds},
                              {"interior", size.interior},
                              {s.tuned_key, rate(size.optimum.value)},
                              {"low", rate(size.optimum.low)},
                              {"high", rate(size.optimum.high)},
                              {"scatter", number(size.scatter)},
                              {"loss", number(size.loss)},
                              {"curvature", number(size.shape.curvature)},
                              {"third", number(size.shape.third)},
                              {"transferred_" + s.tuned_key, rate(size.transferred)},
                              {"regret", interval(size.regret)}};
  return json;
}

/// Numbers that are not finite are null: an interval from one seed, the loss of a diverged run.
inline nlohmann::ordered_json transfer_json(const SweepSubject& s, const TransferReport& report,
                                            const frame::Options& options) {
  using Json = nlohmann::ordered_json;
  Json drift = interval(report.transfer.drift);
  drift["expected"] = report.transfer.expected;
  drift["tolerance"] = check::drift_tolerance;
  Json used{{"runs", report.runs.size()}};
  if (report.budget > 0) used["seconds"] = report.seconds;
  Json json = begin_report("learning_rate_transfer", 2, options);
  json.update(s.origin);
  json.update({{"used", used},
               {"verdict", check::to_string(report.judged.verdict)},
               {"reason", report.judged.reason},
               {"error_rate", check::transfer_error_rate},
               {"drift", drift},
               {"curvature", number(report.transfer.curvature)},
               {"more_seeds", Json::array()},
               {"not_judged", report.judged.not_judged},
               {"sizes", Json::array()},
               {"runs", Json::array()}});
  for (const check::MoreSeeds& more : report.judged.more) {
    json["more_seeds"].push_back({{"size", more.size}, {"seeds", more.seeds}});
  }
  for (const check::SizeTransfer& size : report.transfer.sizes) {
    json["sizes"].push_back(size_json(s, size));
  }
  for (const check::RateRun& run : report.runs) {
    json["runs"].push_back({{"size", run.size},
                            {s.tuned_key, run.rate(s.centre)},
                            {"seed", run.seed},
                            {"loss", number(run.loss)}});
  }
  if (!s.compared.is_null()) json["compared"] = s.compared;
  return json;
}

/// Loss against rate, and optimal rate against size.
inline plot::Figure transfer_figure(const SweepSubject& s, const TransferReport& report) {
  plot::Curve lowest;
  lowest.label = "optimum";
  lowest.line = false;
  std::vector<plot::Curve> losses;
  for (const check::RateCurve& curve : check::rate_curves(report.runs)) {
    plot::Curve line;
    line.label = s.axis + " " + std::to_string(curve.size);
    for (const auto& [octave, loss] : check::mean_losses(curve)) {
      if (!std::isfinite(loss)) continue;
      line.x.push_back(s.at(octave));
      line.y.push_back(loss);
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
    lowest.x.push_back(s.at(size.optimum.value));
    lowest.y.push_back(size.loss);
    measured.x.push_back(static_cast<double>(size.size));
    measured.y.push_back(s.at(size.optimum.value));
    expected.x.push_back(measured.x.back());
    expected.y.push_back(measured.y.front());
    measured.low.push_back(s.at(size.optimum.low));
    measured.high.push_back(s.at(size.optimum.high));
  }
  losses.push_back(lowest);
  const std::string verdict(check::to_string(report.judged.verdict));
  return {s.title + ": " + verdict,
          {{"final loss", s.tuned, s.unit, true, false, losses},
           {"optimal " + s.tuned, s.axis, s.tuned, true, true, {measured, expected}}}};
}

}  // namespace scalewise::experiment
