// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The page of a sweep over learning rates or weight decays.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/page.hpp"
#include "check/transfer_report.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

namespace detail {

/// Rows of which a member, or a member of a member, is null.
inline nlohmann::ordered_json rows_without(const nlohmann::ordered_json& rows,
                                           const std::string& pointer) {
  auto found = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    if (row.at(nlohmann::ordered_json::json_pointer(pointer)).is_null()) found.push_back(row);
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

inline PageSection transfer_next(const Experiment& e, const TransferReport& report) {
  PageSection next{"What to try next"};
  const std::string tuned = tuned_words(e);
  switch (report.judged.verdict) {
    case check::Verdict::pass:
      next.lines = {fmt::format(
          "Tune the {} at {} {} and use it for larger models, as far as the largest {} here; "
          "beyond it, add a larger one to --sizes.",
          tuned, size_name(e), e.sizes.front(), size_name(e))};
      break;
    case check::Verdict::fail:
      next.lines = {
          "Is a part of the rule missing, or does the rule itself not transfer? A coordinate "
          "check tells, and names the part:"};
      next.command = command_line(
          "coordinate_check", {"--rule", e.model.rule, "--optimizer", optimizer_name(e), "--axis",
                               e.axis == Axis::depth ? "depth" : "width", "--out", "check"});
      break;
    case check::Verdict::inconclusive:
      for (const check::MoreSeeds& more : report.judged.more) {
        next.lines.push_back(
            fmt::format("About {} more seeds at {} {}.", more.seeds, size_name(e), more.size));
      }
      next.lines.emplace_back(
          "The verdict's sentence says what is missing. With a higher --seeds, a longer --budget "
          "or more --sizes, the same command continues with the runs in its folder.");
      break;
  }
  return next;
}

inline PageSection transfer_not_judged(const Experiment& e, const TransferReport& report) {
  PageSection section{"What was not judged"};
  for (const check::SizeTransfer& size : report.transfer.sizes) {
    if (size.interior) continue;
    section.lines.push_back(fmt::format("{} {}: no optimum within the {}s tried.", size_name(e),
                                        size.size, tuned_words(e)));
  }
  section.lines.push_back(
      "Sizes beyond these, and other numbers of steps: that optima may bend from size to size is "
      "not in the interval of the drift.");
  return section;
}

}  // namespace detail

/// Requires: the table and the JSON of this report.
inline Page transfer_page(const Experiment& e, const TransferReport& report, const Table& sizes,
                          const nlohmann::ordered_json& json, const plot::Drawing& drawing,
                          const frame::Options& options) {
  const std::string tuned = tunes_decay(e) ? "weight decay" : "learning rate";
  Page page{fmt::format("Transfer of the {} under {}, {}", tuned, e.model.rule, optimizer_name(e)),
            fmt::format("Is the best {} of the smallest {} the best of larger ones?", tuned,
                        grows_both(e) ? "size" : size_name(e)),
            std::string(check::to_string(report.judged.verdict)), sentence(report.judged.reason)};
  auto& sections = page.sections;
  sections.push_back({.title = "Optimum of each " + size_name(e),
                      .lines = {used_text(report)},
                      .table = table_of(sizes)});
  sections.push_back({.title = "Pictures",
                      .lines = {drawing.problem.empty()
                                    ? "Final loss against the " + tuned + ", and the optimal " +
                                          tuned + " against the " + size_name(e)
                                    : "No pictures: " + drawing.problem},
                      .svg = drawing.svg});
  sections.push_back(detail::transfer_next(e, report));
  sections.push_back(
      {.title = "Sizes at which the transferred " + tuned + " diverges",
       .table = detail::size_table(detail::rows_without(json.at("sizes"), "/regret/value"))});
  sections.push_back({.title = "Runs that diverged",
                      .table = detail::run_table(detail::rows_without(json.at("runs"), "/loss"))});
  sections.push_back({.title = "All sizes", .table = detail::size_table(json.at("sizes"))});
  sections.push_back({.title = "All runs",
                      .lines = {"–: diverged. Hovering over a number shows all its digits."},
                      .table = detail::run_table(json.at("runs"))});
  sections.push_back(detail::transfer_not_judged(e, report));
  sections.push_back({.title = "Numbers of the verdict",
                      .table = values_table(json, {"drift", "curvature", "error_rate", "used"})});
  add_origin(page, json, "learning_rate_transfer", options);
  return page;
}

}  // namespace scalewise::experiment
