// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Verdicts on runs of other programs, from a table.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/transfer_report.hpp"
#include "frame/options.hpp"
#include "scalewise/check/judge_sweep.hpp"
#include "scalewise/check/sweep_table.hpp"

namespace scalewise::experiment {

/// The tables to judge, and how to read them.
struct JudgedTables {
  std::string path;     // empty: there is none
  std::string against;  // one to compare with; empty: none
  check::SweepColumns columns = {};
  std::vector<std::string> against_where = {};  // of the other; none: as of the first
};

/// The inputs of a verdict on tables; no run depends on them.
inline void add_table_options(frame::Options& o, JudgedTables& t) {
  o.group("Runs of other programs");
  o.add("--judge", t.path,
        "judge these runs and train nothing (a table: CSV with a header, or JSON lines)")
      .reads();
  o.add("--against", t.against, "and compare them with those in this one").reads();
  o.add("--where", t.columns.where, "column=value: judge these rows only").repeated();
  o.add("--against-where", t.against_where, "the same for --against (default: as --where)")
      .repeated();
  const auto column = [&](const std::string& name, std::string& variable, const std::string& help) {
    o.add(name, variable, help + " (default: a usual name)");
  };
  column("--size-column", t.columns.size, "column of the sizes");
  column("--rate-column", t.columns.rate, "column of the rates");
  column("--seed-column", t.columns.seed, "column of the seeds");
  column("--loss-column", t.columns.loss, "column of the losses");
}

/// Refuses options that have no meaning with --judge, and those of tables without it.
inline void check_table_options(const JudgedTables& t, const frame::Options& o) {
  std::vector<std::string> names;
  for (const std::string& word : o.given_words()) {
    if (word.starts_with("--")) names.push_back(word);
  }
  for (const std::string name : {"--results", "--collect", "--run-one", "--emit-tasks"}) {
    if (o.given(name)) names.push_back(name);
  }
  for (const std::string& name : names) {
    const bool of_table = is_of_table(name.substr(2));
    if (of_table && t.path.empty()) {
      throw InvalidInput(name, "(given)", "--judge", "it names the table");
    }
    if (of_table || t.path.empty()) continue;
    throw InvalidInput(name, "(given)", "nothing next to --judge",
                       "the runs are those of the table");
  }
  if (t.against.empty() && o.given("--against-where")) {
    throw InvalidInput("--against-where", "(given)", "--against", "it names the table");
  }
}

/// A table with its verdict.
struct JudgedTable {
  check::SweepTable table;
  check::JudgedSweep sweep;
  std::string title;
};

inline JudgedTable judged_table(const std::string& path, const check::SweepColumns& columns) {
  JudgedTable result;
  result.table = check::read_sweep_table(path, columns);
  result.sweep = check::judge_sweep_table(result.table);
  result.title = std::filesystem::path(path).filename().string();
  for (const std::string& condition : columns.where) result.title += ", " + condition;
  return result;
}

/// How a table was read, in a sentence.
inline std::string reading_text(const JudgedTable& t) {
  const check::SweepColumns& c = t.table.columns;
  std::string text =
      fmt::format("{}: {} of {} rows; size {}, rate {}, {}, loss {}", t.title,
                  t.table.rows.size() + t.table.missing.size(), t.table.all, c.size, c.rate,
                  c.seed.empty() ? "no seed: all runs are of one" : "seed " + c.seed, c.loss);
  const auto diverged =
      std::count_if(t.table.rows.begin(), t.table.rows.end(),
                    [](const check::SweepRow& row) { return !std::isfinite(row.loss); });
  if (diverged > 0) text += fmt::format("; {} diverged", diverged);
  if (t.table.missing.empty()) return text;
  return text + fmt::format("; no loss in {} {}: {}", t.table.missing.size(),
                            t.table.missing.size() > 1 ? "lines" : "line",
                            fmt::join(t.table.missing, ", "));
}

namespace detail {

/// Which of two is better, by an interval of a difference of what should be small.
inline std::string better(const check::IntervalEstimate& e, const JudgedTable& a,
                          const JudgedTable& b, const std::string& how) {
  const std::string by =
      std::isfinite(e.low) && std::isfinite(e.high)
          ? fmt::format("{:+.3f} (95 % interval {:+.3f} to {:+.3f})", e.value, e.low, e.high)
          : fmt::format("{:+.3f}, without an interval", e.value);
  if (e.high < 0) return fmt::format("{} {}: {}", a.title, how, by);
  if (e.low > 0) return fmt::format("{} {}: {}, its own minus the other", b.title, how, by);
  return fmt::format("open which {}: {}", how, by);
}

}  // namespace detail

/// Sentences and numbers of a comparison.
inline nlohmann::ordered_json comparison_json(const JudgedTable& a, const JudgedTable& b) {
  const check::SweepComparison c = check::compare(a.sweep.transfer, b.sweep.transfer);
  std::vector<std::string> sentences{
      fmt::format("differences are those of {} minus {}", a.title, b.title)};
  const auto judged = [](const JudgedTable& t) {
    return t.sweep.transfer.curved && check::detail::judged_sizes(t.sweep.transfer).size() > 1;
  };
  if (judged(a) && judged(b)) {
    sentences.push_back(
        detail::better(c.drift, a, b, "transfers better, by octaves per octave of drift"));
  } else {
    sentences.push_back(
        fmt::format("not compared: the drift, since {} has none", judged(a) ? b.title : a.title));
  }
  if (c.size == 0) {
    sentences.emplace_back("not compared: the losses, since no size has an optimum in both");
  } else {
    const std::string at = fmt::format("at {} {}", a.table.columns.size, c.size);
    sentences.push_back(
        detail::better(c.tuned, a, b, "ends lower " + at + ", each at its own optimum"));
    sentences.push_back(detail::better(c.carried, a, b,
                                       "ends lower " + at + " with the rate of its smallest size"));
    if (c.pairs < 2) {
      sentences.push_back("fewer than two common seeds " + at +
                          ": seeds are taken to differ as much as at the other sizes");
    }
  }
  return {{"with", b.title},
          {"sentences", sentences},
          {"drift", interval(c.drift)},
          {"size", c.size},
          {"pairs", c.pairs},
          {"tuned", interval(c.tuned)},
          {"carried", interval(c.carried)}};
}

inline TransferReport report_of(const JudgedTable& t) {
  TransferReport report;
  report.runs = t.sweep.runs;
  report.transfer = t.sweep.transfer;
  report.judged = t.sweep.judged;
  return report;
}

/// The names that the report of a table uses.
inline SweepSubject subject_of(const JudgedTable& t) {
  const std::string& axis = t.table.columns.size;
  return {.title = t.title,
          .axis = axis,
          .tuned = "rate",
          .tuned_name = "learning rate",
          .tuned_key = "rate",
          .unit = "loss",
          .origin = {{"table", reading_text(t)}, {"axis", axis}},
          .of_table = true};
}

}  // namespace scalewise::experiment
