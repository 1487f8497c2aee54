// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The page of a sweep over learning rates or weight decays.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/page.hpp"
#include "check/transfer_report.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

namespace detail {

/// Rows of which a member is null.
inline nlohmann::ordered_json rows_without(const nlohmann::ordered_json& rows,
                                           const std::string& name) {
  auto found = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    if (row.at(name).is_null()) found.push_back(row);
  }
  return found;
}

/// A report on a table, whose settings have defaults of training too.
inline nlohmann::ordered_json without_training(nlohmann::ordered_json report) {
  auto settings = nlohmann::ordered_json::object();
  for (const auto& [name, value] : report.at("settings").items()) {
    if (is_of_table(name)) settings[name] = value;
  }
  report["settings"] = settings;
  return report;
}

/// The sizes at which the transferred rate diverges.
inline nlohmann::ordered_json diverging(const nlohmann::ordered_json& sizes,
                                        const TransferReport& report) {
  auto found = nlohmann::ordered_json::array();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (std::isinf(report.transfer.sizes[k].regret.value)) found.push_back(sizes[k]);
  }
  return found;
}

/// Rows of sizes, with the regret's members among their own.
inline PageTable size_table(const nlohmann::ordered_json& sizes) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& size : sizes) {
    nlohmann::ordered_json row = size;
    row.erase("regret");
    for (const auto& [name, value] : size.at("regret").items()) {
      row[name == "value" ? "regret" : "regret " + name] = value;
    }
    rows.push_back(row);
  }
  PageTable table = table_of(rows);
  table.sortable = true;
  return table;
}

inline PageTable run_table(const nlohmann::ordered_json& runs) {
  PageTable table = table_of(runs);
  table.sortable = true;
  return table;
}

inline PageSection transfer_next(const SweepSubject& s, const TransferReport& report) {
  PageSection next{"What to try next"};
  switch (report.judged.verdict) {
    case check::Verdict::pass:
      next.lines = {fmt::format(
          "Tune the {} at {} {} and use it for larger models, as far as the largest {} here; "
          "beyond it, add a larger one.",
          s.tuned, s.axis, report.transfer.sizes.front().size, s.axis)};
      break;
    case check::Verdict::fail:
      next.lines = {
          "Is a part of the rule missing, or does the rule itself not transfer? A coordinate "
          "check tells, and names the part:"};
      next.command = command_line("coordinate_check",
                                  s.check.empty() ? std::vector<std::string>{"--help"} : s.check);
      break;
    case check::Verdict::inconclusive:
      for (const check::MoreSeeds& more : report.judged.more) {
        next.lines.push_back(
            fmt::format("About {} more seeds at {} {}.", more.seeds, s.axis, more.size));
      }
      next.lines.emplace_back("The verdict's sentence says what is missing.");
      if (!s.check.empty()) {
        next.lines.emplace_back(
            "With a higher --seeds, a longer --budget or more --sizes, the same command continues "
            "with the runs in its folder.");
      }
      break;
  }
  return next;
}

inline PageSection transfer_not_judged(const TransferReport& report) {
  PageSection section{"What was not judged"};
  for (const std::string& what : report.judged.not_judged) {
    section.lines.push_back(sentence(what) + ".");
  }
  section.lines.emplace_back(
      "Sizes beyond these, and other numbers of steps: that optima may bend from size to size is "
      "not in the interval of the drift.");
  return section;
}

}  // namespace detail

/// Requires: the table and the JSON of this report.
inline Page transfer_page(const SweepSubject& s, const TransferReport& report, const Table& sizes,
                          const nlohmann::ordered_json& json, const plot::Drawing& drawing,
                          const frame::Options& options) {
  const std::string& tuned = s.tuned_name;
  Page page{
      fmt::format("Transfer of the {}: {}", tuned, s.title),
      fmt::format("Is the best {} of the smallest {} the best of larger ones?", tuned, s.axis),
      std::string(check::to_string(report.judged.verdict)), sentence(report.judged.reason)};
  auto& sections = page.sections;
  sections.push_back({.title = "Optimum of each " + s.axis,
                      .lines = {used_text(report)},
                      .table = table_of(sizes)});
  sections.push_back({.title = "Pictures",
                      .lines = {drawing.problem.empty()
                                    ? "Final loss against the " + tuned + ", and the optimal " +
                                          tuned + " against the " + s.axis
                                    : "No pictures: " + drawing.problem},
                      .svg = drawing.svg});
  if (!s.compared.is_null()) {
    sections.push_back({.title = "Compared", .lines = s.compared.at("sentences")});
  }
  sections.push_back(detail::transfer_next(s, report));
  sections.push_back({.title = "Sizes at which the transferred " + tuned + " diverges",
                      .table = detail::size_table(detail::diverging(json.at("sizes"), report))});
  sections.push_back({.title = "Runs that diverged",
                      .table = detail::run_table(detail::rows_without(json.at("runs"), "loss"))});
  sections.push_back({.title = "All sizes", .table = detail::size_table(json.at("sizes"))});
  sections.push_back({.title = "All runs",
                      .lines = {"–: diverged. Hovering over a number shows all its digits."},
                      .table = detail::run_table(json.at("runs"))});
  sections.push_back(detail::transfer_not_judged(report));
  sections.push_back({.title = "Numbers of the verdict",
                      .table = values_table(json, {"drift", "curvature", "error_rate", "used"})});
  add_origin(page, s.of_table ? detail::without_training(json) : json, "learning_rate_transfer",
             options);
  return page;
}

}  // namespace scalewise::experiment
