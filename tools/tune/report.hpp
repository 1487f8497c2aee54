// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The report of a search.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "check/cost.hpp"
#include "check/report.hpp"
#include "frame/program.hpp"
#include "scalewise/io/fit_table.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/utf8.hpp"
#include "tune/quadratic.hpp"
#include "tune/tuning.hpp"

namespace scalewise::tune {

/// All that is shown.
struct Report {
  State state;
  Rows rows;
  std::vector<Parameter> constants = {};  // of the best draw
  std::vector<AxisEffect> effects = {};
  long used = 0;      // runs that the quadratic is fitted to
  bool flat = false;  // no draw changed the loss, so that there is no best
  std::optional<check::JudgedSweep> verified = {};
  double runs = 0;    // the search in runs of the base, by its steps
  double target = 0;  // a run of the target in those of the base, by products; 0: no target
  std::string carried = {};
};

/// Where constants lie along each axis, from -1 to 1.
inline std::vector<double> place_in_box(const Space& space,
                                        const std::vector<Parameter>& constants) {
  std::vector<double> at;
  for (std::size_t j = 0; j < space.size(); ++j) {
    const Axis& axis = space[j];
    at.push_back(2 * std::log(constants[j].value / axis.low) / std::log(axis.high / axis.low) - 1);
  }
  return at;
}

/// The quadratic of all runs that did not fail; each length and seed has a level of its own.
inline void add_effects(Report& report, const TunedModel& model, long steps) {
  std::vector<Point> points;
  std::vector<std::vector<double>> lost;
  for (const Stage& stage : report.state.search.stages) {
    for (const Trial& trial : stage.trials) {
      const std::string name = Job{trial}.name();
      const double loss = loss_of_row(name, report.rows.at(name));
      const auto at = place_in_box(model.space(), model.constants(trial.draw));
      if (std::isfinite(loss)) {
        points.push_back({at, trial.steps * 100 + trial.seed, loss, trial.steps < steps});
      } else {
        lost.push_back(at);
      }
    }
  }
  const Quadratic quadratic(std::move(points), std::move(lost));
  report.used = static_cast<long>(quadratic.used());
  report.effects = quadratic.effects(place_in_box(model.space(), report.constants));
}

/// Whether all draws of each length and seed have one loss, as from a command that does not read its plan.
inline bool ignores_draws(const State& state, const Rows& rows) {
  std::map<std::pair<long, long>, std::vector<double>> losses;
  for (const Stage& stage : state.search.stages) {
    for (const Trial& trial : stage.trials)
      losses[{trial.steps, trial.seed}].push_back(
          loss_of_row(Job{trial}.name(), rows.at(Job{trial}.name())));
  }
  return std::all_of(losses.begin(), losses.end(), [](const auto& group) {
    const std::vector<double>& all = group.second;
    return std::isfinite(all.front()) &&
           std::all_of(all.begin(), all.end(), [&](double loss) { return loss == all.front(); });
  });
}

inline check::JudgedSweep verified_by(const std::vector<check::SweepRow>& sweep,
                                      const std::string& axis) {
  const bool positive = std::all_of(sweep.begin(), sweep.end(),
                                    [](const check::SweepRow& row) { return !(row.loss <= 0); });
  if (positive) return check::judge_sweep(sweep, axis);
  check::JudgedSweep none;
  none.judged.verdict = check::Verdict::inconclusive;
  none.judged.reason = "a loss is not above 0, so that costs are no shares of it";
  return none;
}

inline Report report_of(const Tuning& t, const TunedModel& model, const Verified& verify,
                        const State& state, const Rows& rows) {
  Report report{state, rows};
  for (const Stage& stage : state.search.stages) {
    for (const Trial& trial : stage.trials)
      report.runs += static_cast<double>(trial.steps) / static_cast<double>(t.run.steps);
  }
  if (state.search.best.index < 0) return report;
  if (ignores_draws(state, rows)) {
    report.flat = true;
    report.state.search.best = {-1};
    return report;
  }
  report.constants = model.constants(state.search.best);
  add_effects(report, model, t.run.steps);
  if (verify.sizes.empty()) return report;
  const double rate = model.rate(state.search.best);
  std::vector<check::SweepRow> sweep;
  for (const check::RateRun& run : state.sweep.runs)
    sweep.push_back({run.size, rate * std::exp2(run.octave), run.seed, run.loss});
  report.verified = verified_by(sweep, verify.width ? "width" : "depth");
  return report;
}

/// The names of runs that failed, with the reasons.
inline std::vector<std::pair<std::string, std::string>> failures(const Rows& rows) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [name, row] : rows) {
    if (row.contains("reason")) all.emplace_back(name, row.at("reason").get<std::string>());
  }
  return all;
}

inline long failed_of(const Stage& stage, const Rows& rows) {
  return std::count_if(stage.trials.begin(), stage.trials.end(), [&](const Trial& trial) {
    return rows.at(Job{trial}.name()).contains("reason");
  });
}

inline nlohmann::ordered_json report_json(const Report& r, const TunedModel& model,
                                          const frame::Options& options) {
  using Json = nlohmann::ordered_json;
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  const Search& search = r.state.search;
  Json json = experiment::begin_report("tune", 1, options);
  for (const Stage& stage : search.stages) {
    json["stages"].push_back({{"name", stage.name},
                              {"runs", stage.trials.size()},
                              {"failed", failed_of(stage, r.rows)}});
  }
  json["best"] = nullptr;
  if (r.flat) json["reason"] = "no draw changed the loss";
  for (std::size_t j = 0; j < r.effects.size(); ++j) {
    const AxisEffect& e = r.effects[j];
    const Axis& axis = model.space()[j];
    json["constants"].push_back({{"name", axis.name},
                                 {"value", r.constants[j].value},
                                 {"low", axis.value((e.low + 1) / 2)},
                                 {"high", axis.value((e.high + 1) / 2)},
                                 {"effect", e.is_known() ? Json(e.effect) : Json()},
                                 {"error", number(e.error)}});
  }
  if (search.best.index >= 0) {
    json["best"] = {{"constants", constants_text(r.constants)},
                    {"loss", number(search.loss)},
                    {"low", number(search.low)},
                    {"high", number(search.high)},
                    {"seeds", search.confirmed}};
  }
  if (r.verified) {
    json["verified"] = {{"verdict", std::string(check::to_string(r.verified->judged.verdict))},
                        {"reason", r.verified->judged.reason}};
  }
  json["cost"] = {{"runs", r.runs}, {"target", r.target}};
  for (const auto& [name, row] : r.rows) json["rows"].push_back(row);
  return json;
}

/// So many decimals that a number of this size has two digits, within reason.
inline int decimals_of(double size, int least) {
  return size > 0 && std::isfinite(size)
             ? std::clamp(static_cast<int>(1 - std::floor(std::log10(size))), least, 12)
             : least;
}

inline std::string loss_text(const Search& search) {
  if (search.confirmed == 0) return "it failed on all four new seeds";
  const int decimals = decimals_of(search.high - search.low, 4);
  const std::string loss = fmt::format("loss {:.{}f}", search.loss, decimals);
  if (search.confirmed < static_cast<std::size_t>(confirm_seeds)) {
    return loss +
           fmt::format(" on {} of four new seeds; it failed on the others", search.confirmed);
  }
  return loss +
         fmt::format(
             ", 95 % interval {:.{}f} to {:.{}f}, on four seeds that had no part in the choice",
             search.low, decimals, search.high, decimals);
}

/// The constants, what each is worth, and how well it is known.
inline Table effect_table(const Report& r, const TunedModel& model) {
  Table table{{}, {"constant", "best", "as good, from", "to", "half the range away"}, {}};
  for (std::size_t j = 0; j < r.effects.size(); ++j) {
    const AxisEffect& e = r.effects[j];
    const Axis& axis = model.space()[j];
    const std::string value = numeric::number_text(r.constants[j].value);
    if (!e.is_known()) {
      table.rows.push_back({axis.name, value, "unknown", "unknown", "unknown"});
      continue;
    }
    const int decimals = decimals_of(2 * e.error, 3);
    table.rows.push_back(
        {axis.name, value, fmt::format("{:.2g}", axis.value((e.low + 1) / 2)),
         fmt::format("{:.2g}", axis.value((e.high + 1) / 2)),
         fmt::format("{:+.{}f} ± {:.{}f}", e.effect, decimals, 2 * e.error, decimals)});
  }
  return table;
}

inline std::string cost_text(const Report& r) {
  std::string text =
      fmt::format("the search trained as many steps as {:.1f} runs of the base", r.runs);
  if (r.target > 0)
    text += fmt::format("; by products, one run of the target is {:.1f} of them", r.target);
  return text;
}

/// The constants that a wider range might improve: they have an effect, and what is as good reaches the end that the best
/// is close to.
inline void show_ends(const Report& r, const TunedModel& model) {
  const std::vector<double> at = place_in_box(model.space(), r.constants);
  for (std::size_t j = 0; j < at.size(); ++j) {
    const Axis& axis = model.space()[j];
    const AxisEffect& e = r.effects[j];
    const bool reaches = at[j] < 0 ? e.low <= -1 : e.high >= 1;
    if (reaches && std::fabs(at[j]) > 0.5 && e.effect > 2 * e.error) {
      std::cout << axis.name << " is close to the end of its range, "
                << numeric::number_text(at[j] < 0 ? axis.low : axis.high) << ": widen the range\n";
    }
  }
}

inline void show_text(const Report& r, const TunedModel& model, bool rate_apart) {
  const Search& search = r.state.search;
  Table stages{{}, {"stage", "runs", "failed"}, {}};
  for (const Stage& stage : search.stages) {
    stages.rows.push_back({stage.name, std::to_string(stage.trials.size()),
                           std::to_string(failed_of(stage, r.rows))});
  }
  std::cout << io::render_to_fit(stages, frame::terminal_columns()) << '\n';
  const auto failed = failures(r.rows);
  for (std::size_t i = 0; i < failed.size() && i < 20; ++i)
    std::cout << "failed: " << failed[i].first << ": " << failed[i].second << '\n';
  if (failed.size() > 20) std::cout << "and " << failed.size() - 20 << " more failed\n";
  if (!failed.empty()) std::cout << '\n';
  if (search.best.index < 0) {
    std::cout << (r.flat ? "no draw changed the loss: does the command read {plan}?\n"
                         : "no draw trained to the end with every seed\n");
    return;
  }
  const std::string planned = constants_text(model.planned(r.constants));
  std::cout << io::render_to_fit(effect_table(r, model), frame::terminal_columns()) << '\n'
            << "best: " << (planned.empty() ? "" : "--constant " + planned)
            << (rate_apart ? fmt::format("{}trained with a learning rate of {}",
                                         planned.empty() ? "" : ", ", model.rate(search.best))
                           : "")
            << "\n      " << loss_text(search) << '\n'
            << cost_text(r) << '\n';
  show_ends(r, model);
  if (!r.carried.empty()) std::cout << "wrote " << r.carried << '\n';
  if (!r.verified) return;
  std::cout << "verified: " << check::to_string(r.verified->judged.verdict) << ": "
            << r.verified->judged.reason << '\n';
}

}  // namespace scalewise::tune
