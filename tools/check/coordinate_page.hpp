// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The page of a coordinate check.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/coordinate_findings.hpp"
#include "check/experiment.hpp"
#include "check/page.hpp"
#include "scalewise/plot/figure.hpp"

namespace scalewise::experiment {

namespace detail {

using Json = nlohmann::ordered_json;

/// A quantity's row: its members, and what was measured at each size in a column of its own.
inline Json quantity_row(const Json& quantity, const Json& sizes) {
  Json row = quantity;
  row.erase("points");
  if (row["verdict"].is_null()) row["verdict"] = "not judged";
  for (const Json& size : sizes) {
    Json& at = row["log rms at " + size.at("size").dump()] = nullptr;
    for (const Json& point : quantity.at("points")) {
      if (point.at("size") == size.at("size")) at = point;
    }
  }
  return row;
}

/// Mean and deviation between seeds; the exact numbers, and how many runs there were, on demand.
inline Cell point_cell(const Json& point) {
  const Cell mean = cell_of(point.at("mean_log_rms"));
  const Cell deviation = cell_of(point.at("deviation"));
  return {mean.text + " ± " + deviation.text,
          mean.exact + " ± " + deviation.exact + ", " + point.at("runs").dump() + " runs"};
}

/// All quantities, or those of a verdict.
inline PageTable quantity_table(const Json& json, const std::string& verdict = {}) {
  Json rows = Json::array();
  for (const Json& quantity : json.at("quantities")) {
    if (!verdict.empty() && quantity.at("verdict") != verdict) continue;
    rows.push_back(quantity_row(quantity, json.at("sizes")));
  }
  PageTable table = table_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t column = 0;
    for (const auto& [name, value] : rows[i].items()) {
      if (value.is_object()) table.rows[i][column] = point_cell(value);
      ++column;
    }
  }
  table.sortable = true;
  return table;
}

inline std::string coordinate_reason(const Findings& found) {
  const check::Report& r = found.report;
  if (!found.optimizer.empty())
    return sentence(optimizer_text(found)) + "; the first: " + found.optimizer[0];
  if (!r.diagnosis.empty()) return r.diagnosis;
  if (!r.missing.empty()) return "Missing: " + r.missing[0];
  if (!r.undecided.empty()) return "Open: " + r.undecided[0];
  return "Every slope agrees with what the rule predicts, and every mistake that these records "
         "can show is ruled out.";
}

/// How sure the named cause is.
inline std::string cause_text(const check::Report& report) {
  switch (report.cause) {
    case check::Cause::mistake:
      return fmt::format(
          "The mistake named above is the most likely cause, at odds of {}10^{:.2g} to 1 over the "
          "next explanation.",
          report.log10_odds == 9 ? "at least " : "", report.log10_odds);
    case check::Cause::growth:
      return "The rule itself lets it grow; this is not a mistake in applying it.";
    case check::Cause::unknown:
      return "No single part of the rule explains all that fails.";
    case check::Cause::none:
      break;
  }
  return {};
}

/// The sweep of rates of the models that were checked, as a command.
inline std::string sweep_command(const Experiment& e, const frame::Options& options) {
  std::vector<std::string> words = same_models(e, options);
  const auto unties = [](const std::string& word) { return word.starts_with("tied_head="); };
  if (std::none_of(words.begin(), words.end(), unties))
    words.insert(words.end(), {"--set", "tied_head=false"});
  words.insert(words.end(), {"--out", "transfer"});
  return command_line("learning_rate_transfer", words);
}

inline PageSection coordinate_next(const Experiment& e, const Findings& found,
                                   const frame::Options& options) {
  PageSection next{"What to try next"};
  const check::Report& r = found.report;
  const auto say = [&](const std::string& line) { next.lines.push_back(line); };
  for (const std::string& line : r.missing) say("Missing: " + line);
  for (const std::string& line : r.undecided) say("Open: " + line);
  if (r.verdict == check::Verdict::inconclusive) {
    say(options.given("--judge")
            ? "Append more runs to the files of records, and judge them again."
            : "More runs: a longer --budget, or a fixed number with --seeds. Where seeds do not "
              "help, add a larger size to --sizes. If training diverged, lower --rate.");
  } else if (r.verdict == check::Verdict::pass) {
    const bool own_code = options.given("--plans");
    say(own_code
            ? "Does the best learning rate of the smallest model stay the best? Train each size at "
              "several rates, write size, rate, seed and loss of each run into a table, and "
              "have it judged:"
            : "Does the best learning rate of the smallest model stay the best? A sweep tells:");
    next.command =
        own_code ? "learning_rate_transfer --judge losses.csv" : sweep_command(e, options);
  } else if (!found.optimizer.empty()) {
    say("Set the optimizer as the plan says; each difference is listed below. Then check again.");
  } else if (r.cause == check::Cause::mistake) {
    say("Look for the part that is named above where the plan is applied: in the initialization, "
        "the optimizer's groups, or the forward and backward pass. Then check again.");
  } else if (r.cause == check::Cause::growth) {
    say("Choose a rule whose updates do not grow with the " + axis_name(e) + ":");
    next.command = "plan --list-rules";
  } else {
    say("Compare the rows that fail with the plan, those of the earliest step first: later ones "
        "may be their consequence. Mend one mistake, and check again.");
  }
  return next;
}

inline PageSection not_judged(const Findings& found, const Json& json) {
  PageSection section{"What was not judged"};
  std::map<std::string, std::vector<std::string>> names;
  for (const Json& quantity : json.at("quantities")) {
    if (!quantity.at("verdict").is_null()) continue;
    auto& of_signal = names[quantity.at("signal").get<std::string>()];
    const auto name = quantity.at("name").get<std::string>();
    if (of_signal.empty() || of_signal.back() != name) of_signal.push_back(name);
  }
  for (const auto& [signal, list] : names) {
    section.lines.push_back(fmt::format("No prediction at some steps or at all, {}s: {}", signal,
                                        fmt::join(list, ", ")));
  }
  for (const auto* lines : {&found.report.unknown, &found.report.left_out}) {
    for (const std::string& line : *lines) section.lines.push_back(sentence(line));
  }
  if (!found.report.unchecked.empty()) {
    section.lines.push_back(sentence(unchecked_text(found.report)));
  }
  if (section.lines.empty()) section.lines.emplace_back("All that was recorded was judged.");
  return section;
}

}  // namespace detail

/// `slopes`: their heat map.
inline Page coordinate_page(const Experiment& e, const Findings& found, const Shown& show,
                            const std::string& slopes, const plot::Drawing& drawing,
                            const frame::Options& options) {
  const detail::Json& json = show.json;
  const std::string verdict(to_string(found.report.verdict));
  Page page{fmt::format("Coordinate check of {}, {}", e.model.rule, optimizer_name(e)),
            fmt::format(
                "Does training follow the rule? Growth of activations, gradients and updates with "
                "the {}.{}{}",
                axis_name(e), found.mistake.empty() ? "" : " Deliberate mistake: ", found.mistake),
            verdict, detail::coordinate_reason(found)};
  auto& sections = page.sections;

  PageSection diagnosis{"Diagnosis"};
  for (const std::string& line :
       {detail::cause_text(found.report), show.counts.substr(0, show.counts.find('\n')),
        show.two_widths, show.runs}) {
    if (!line.empty()) diagnosis.lines.push_back(sentence(line));
  }
  diagnosis.lines.emplace_back(
      "Slopes of log(root mean square) against log(size), with two standard errors:");
  diagnosis.table = table_of(show.slopes);
  sections.push_back(std::move(diagnosis));
  sections.push_back({"Optimizer", found.optimizer});
  sections.push_back({.title = "Slopes at all steps",
                      .lines = {"Measured slopes minus predicted ones: pale where they agree"},
                      .svg = slopes});
  sections.push_back(
      {.title = "Pictures",
       .lines = {drawing.problem.empty() ? "Root mean squares against the " + axis_name(e) +
                                               ", with two standard deviations; dashed: as expected"
                                         : "No pictures: " + drawing.problem},
       .svg = drawing.svg});
  sections.push_back(detail::coordinate_next(e, found, options));
  sections.push_back({.title = "Rows that fail", .table = detail::quantity_table(json, "fail")});
  sections.push_back(
      {.title = "Rows in doubt", .table = detail::quantity_table(json, "inconclusive")});
  sections.push_back(
      {.title = "All rows",
       .lines = {"Deviations are standard normal deviates from what is expected. Hovering over a "
                 "number shows all its digits."},
       .table = detail::quantity_table(json)});
  sections.push_back(detail::not_judged(found, json));
  sections.push_back(
      {.title = "Numbers of the verdict",
       .table = values_table(json, {"rate", "steps", "runs", "cause", "log10_odds", "error_rate",
                                    "threshold", "doubt_threshold", "two_widths"})});
  PageTable judged{{"setting", "value"}};
  for (const files::Setting& input : found.judged)
    judged.rows.push_back({{input.name}, {input.value}});
  sections.push_back({.title = "Settings of the records", .table = std::move(judged)});
  add_origin(page, json, "coordinate_check", options);
  return page;
}

}  // namespace scalewise::experiment
