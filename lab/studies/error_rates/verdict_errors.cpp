// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// verdict_errors: how often the coordinate check is wrong, on set-ups drawn at random from the space
// of verdict_setups.hpp; docs/checks/coordinate_check.md has the table.
//
//   verdict_errors
//   verdict_errors --correct 40 --gross 40 --slight 0 --text my.txt --first 1000
//   verdict_errors --groups 40

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/coordinate_run.hpp"
#include "check/coordinate_runs.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/coordinate_check.hpp"
#include "scalewise/check/rounds.hpp"
#include "train/model.hpp"
#include "verdict_setups.hpp"

namespace {

using namespace scalewise;
using verdicts::Mistake;
using verdicts::Setup;

struct Arguments {
  long correct = 150, gross = 150, slight = 60, one_tensor = 0;
  long first = 0;
  long rounds = 3;
  long groups = 0;
  std::string text;
  bool list = false;
  verdicts::Space space = verdicts::Space::all;
};

/// Verdicts of one kind of set-up, and whether causes were named.
struct Counts {
  std::array<long, 3> verdicts{};
  long named = 0;
  long listed = 0;  // of those that pass: the report says that its records cannot show the mistake
  std::size_t runs = 0;

  long all() const { return verdicts[0] + verdicts[1] + verdicts[2]; }
};

/// How often intervals of 95 % hold the slope that is predicted.
struct Held {
  long all = 0;
  long held = 0;
};

/// The interval of a share.
/// Source:   Wilson 1927, Journal of the American Statistical Association 22, p. 209
std::string share_text(long count, long all) {
  if (all == 0) return "-";
  const auto n = static_cast<double>(all);
  const double p = static_cast<double>(count) / n;
  const double z = 1.959964;
  const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return fmt::format("{:.1f} ({:.1f} to {:.1f})", 100 * p, 100 * std::max(0.0, middle - half),
                     100 * std::min(1.0, middle + half));
}

/// Rounds as the program makes them, without its clock.
check::Report check_of(Setup setup, const Arguments& a, std::size_t& runs_made) {
  train::Settings& s = setup.experiment.model;
  if (!a.text.empty()) s.text = a.text;
  const train::Data data = train::read_data(s);
  check::Rounds rounds(setup.experiment.sizes, setup.experiment.axis == experiment::Axis::depth);
  setup.experiment.sizes = rounds.sizes();
  const std::vector<check::Member> family = planned(setup, data);
  const std::vector<check::Member> wrong = trained(setup, data);
  s.rate *= experiment::usual_rate(settings_at(setup.experiment, family.front().size, 1), data,
                                   wrong.front().plan);
  check::Assumptions assumptions;
  assumptions.norms = s.norm != nn::Norm::none;
  assumptions.post_norm = s.placement == NormPlacement::post;
  experiment::CoordinateRuns runs(setup.experiment, data, wrong, setup.fault, "", {});
  for (long round = 1;; ++round) {
    runs.train(rounds.seeds());
    check::Criteria criteria;
    criteria.error_rate *= rounds.share_of_errors();
    check::Report report = check::coordinate_check(runs.records(rounds.seeds()),
                                                   runs.present(family), assumptions, criteria);
    runs_made = runs.count(rounds.seeds());
    const bool open = report.verdict == check::Verdict::inconclusive && report.missing.empty();
    if (!open || round >= a.rounds) return report;
    rounds.next(report.wants_larger_size);
  }
}

void count_intervals(const check::Report& report, std::map<check::Regime, Held>& held) {
  for (const check::Judgement& j : report.judgements) {
    if (!j.expected || !j.measured || j.expected->band.low != j.expected->band.high) continue;
    Held& h = held[j.expected->regime];
    const double away = (j.measured->slope - j.expected->band.low) / j.measured->error;
    ++h.all;
    if (std::abs(numeric::normal_deviate(away, j.measured->degrees)) <= 1.959964) ++h.held;
  }
}

std::string key_of(const Setup& setup, Mistake mistake) {
  if (mistake == Mistake::none) return "correct";
  if (mistake == Mistake::gross) return "gross mistake";
  if (mistake == Mistake::one_tensor) {
    return setup.one_tensor->of_rate ? "rate of one tensor" : "standard deviation of one tensor";
  }
  return fmt::format("{} off by {:.2f}",
                     verdicts::is_multiplier(setup.fault->ingredient) ? "multiplier" : "exponent",
                     std::abs(setup.fault->off));
}

/// Whether the report says that its records cannot show the mistake.
bool is_listed(const check::Report& report, const Setup& setup, const std::string& cause) {
  const auto& unchecked = report.unchecked;
  return std::find(unchecked.begin(), unchecked.end(), cause) != unchecked.end() ||
         std::any_of(report.open_slips.begin(), report.open_slips.end(),
                     [&](const check::Fault& open) {
                       return setup.fault && open.ingredient == setup.fault->ingredient &&
                              open.off == setup.fault->off;
                     });
}

void run(const Arguments& a) {
  std::map<std::string, Counts> counts;
  std::map<check::Regime, Held> held;
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [mistake, number] : {std::pair{Mistake::none, a.correct},
                                        {Mistake::gross, a.gross},
                                        {Mistake::slight, a.slight},
                                        {Mistake::one_tensor, a.one_tensor}}) {
    for (long i = a.first; i < a.first + number; ++i) {
      if (frame::stop_requested() != 0) throw frame::Interrupted{};
      Setup setup = verdicts::draw(mistake, static_cast<std::uint64_t>(i), a.space);
      setup.experiment.before_seeds = 1000 * i;
      if (a.list) {
        fmt::print("{}\n", setup.name);
        continue;
      }
      std::size_t runs = 0;
      const check::Report report = check_of(setup, a, runs);
      if (mistake == Mistake::none) count_intervals(report, held);
      Counts& c = counts[key_of(setup, mistake)];
      ++c.verdicts[static_cast<std::size_t>(report.verdict)];
      c.runs += runs;
      const std::string cause = setup.fault        ? to_string(*setup.fault)
                                : setup.one_tensor ? setup.one_tensor->tensor
                                                   : "one global rate";
      if (report.diagnosis.find(cause) != std::string::npos) ++c.named;
      const bool listed = mistake != Mistake::none && is_listed(report, setup, cause);
      if (listed && report.verdict == check::Verdict::pass) ++c.listed;
      const check::Verdict right =
          mistake == Mistake::none ? check::Verdict::pass : check::Verdict::fail;
      const auto& why = report.undecided.empty() ? report.missing : report.undecided;
      if (report.verdict == right) continue;
      fmt::print(stderr, "{}: {}{}; {} {}\n", setup.name, to_string(report.verdict),
                 listed ? ", listed as unchecked" : "", report.diagnosis,
                 why.empty() ? "" : why.front());
    }
  }
  if (a.list) return;
  fmt::print(
      "| set-ups | number | pass, % | inconclusive, % | fail, % | named | listed | runs |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const auto& [key, c] : counts) {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.0f} |\n", key, c.all(),
               share_text(c.verdicts[0], c.all()), share_text(c.verdicts[1], c.all()),
               share_text(c.verdicts[2], c.all()), key == "correct" ? "-" : std::to_string(c.named),
               key == "correct" ? "-" : std::to_string(c.listed),
               static_cast<double>(c.runs) / static_cast<double>(c.all()));
  }
  fmt::print("\n| intervals of 95 % | number | hold the prediction, % |\n|---|---|---|\n");
  for (const auto& [regime, h] : held) {
    fmt::print("| {} | {} | {:.1f} |\n", word(check::regime_words, regime), h.all,
               100 * static_cast<double>(h.held) / static_cast<double>(h.all));
  }
  fmt::print(stderr, "{:.0f} s\n",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

/// The set-ups of the program's own test, each from many groups of seeds.
void run_groups(const Arguments& a) {
  fmt::print("| set-up | groups of seeds that pass |\n|---|---|\n");
  for (const Setup& tested : verdicts::tested()) {
    long passed = 0;
    for (long group = 0; group < a.groups; ++group) {
      if (frame::stop_requested() != 0) throw frame::Interrupted{};
      Setup setup = tested;
      setup.experiment.before_seeds = 1000 * group;
      std::size_t runs = 0;
      if (check_of(setup, a, runs).verdict == check::Verdict::pass) ++passed;
    }
    fmt::print("| {} | {} of {} |\n", tested.name, passed, a.groups);
  }
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Program program{"verdict_errors", "How often the coordinate check is wrong."};
  Options& o = *program.options;
  o.add("--correct", a->correct, "number of correct set-ups").from(0);
  o.add("--gross", a->gross, "number of gross mistakes").from(0);
  o.add("--slight", a->slight, "number of exponents that are off by little").from(0);
  o.add("--one-tensor", a->one_tensor, "number of rates and deviations of one tensor that are off")
      .from(0);
  o.add("--space", a->space, verdicts::space_words, "which set-ups: all, of Muon, or of experts");
  o.add("--first", a->first, "number of the first set-up").from(0);
  o.add("--rounds", a->rounds, "rounds of runs, at most").from(1).to(6);
  o.add("--groups", a->groups, "seeds of the set-ups of the program's test, and nothing else")
      .from(0);
  o.add("--text", a->text, "text to learn from, byte by byte").reads();
  o.add("--list", a->list, "print the set-ups, run nothing");
  program.run = [a](const std::vector<std::string>&) {
    quiet = true;
    if (a->groups > 0) {
      run_groups(*a);
    } else {
      ::run(*a);
    }
    return 0;
  };
  return program;
}
