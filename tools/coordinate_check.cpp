// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// coordinate_check: trains the reference transformer for a few steps at several widths, depths or numbers of experts and
// tells whether activations, gradients and updates grow as the rule predicts.
//
//   coordinate_check --rule maximal-update
//   coordinate_check --rule maximal-update --fault missing:output-multiplier
//   coordinate_check --rule maximal-update --fault off:hidden-rate:0.1

#include "scalewise/check/coordinate_check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/coordinate_output.hpp"
#include "check/coordinate_run.hpp"
#include "check/coordinate_runs.hpp"
#include "check/coordinate_tasks.hpp"
#include "check/experiment.hpp"
#include "check/judged_model.hpp"
#include "check/judged_plans.hpp"
#include "check/network_plan.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/record_file.hpp"
#include "scalewise/check/rounds.hpp"
#include "scalewise/data/structure.hpp"
#include "scalewise/files/file.hpp"
#include "train/model.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

struct Arguments {
  Experiment e;
  double budget = 60;      // seconds
  std::string trained_as;  // another rule, to see the check fail
  std::string fault;       // missing:INGREDIENT, twice:INGREDIENT or off:INGREDIENT:EXPONENT
  std::string record;
  std::vector<std::string> judge;
  std::vector<std::string> plans;
  TaskOptions tasks;
};

std::optional<check::Fault> fault_of(const std::string& text) {
  if (text.empty()) return {};
  const auto refuse = [&] {
    throw InvalidInput("--fault", messages::printable(text),
                       "missing:INGREDIENT, twice:INGREDIENT or off:INGREDIENT:EXPONENT",
                       "for example missing:output-multiplier");
  };
  const std::size_t colon = text.find(':');
  const std::string how = text.substr(0, colon);
  if (colon == std::string::npos || (how != "missing" && how != "twice" && how != "off")) refuse();
  std::string what = text.substr(colon + 1);
  check::Fault fault;
  fault.doubled = how == "twice";
  if (how == "off") {
    const std::size_t second = what.find(':');
    if (second == std::string::npos) refuse();
    fault.off =
        train::number_of("--fault", what.substr(second + 1), -2.0, 2.0, "an exponent from -2 to 2");
    what.resize(second);
    if (fault.off == 0) refuse();
  }
  fault.ingredient = value_of(check::ingredient_words, "--fault", what);
  return fault;
}

/// The plans of a rule for all sizes.
std::vector<check::Member> family_of(const Experiment& e, const train::Data& data) {
  std::vector<check::Member> family;
  for (const long size : e.sizes) {
    const train::Settings s = settings_at(e, size, 1);
    family.push_back({size, network_plan(s, data)});
  }
  return family;
}

/// The family that the rule plans, and the family that is trained.
struct Families {
  std::vector<check::Member> planned;
  std::vector<check::Member> trained;
};

Families families_of(const Arguments& a, const std::vector<long>& sizes,
                     const std::optional<check::Fault>& fault, const train::Data& data) {
  Experiment e = a.e;
  e.sizes = sizes;
  Families families{family_of(e, data), {}};
  if (!a.trained_as.empty()) e.model.rule = a.trained_as;
  families.trained = family_of(e, data);
  if (!fault) return families;
  if (!check::changes(families.trained, *fault)) {
    throw InvalidInput("--fault", a.fault, "a part of the rule that differs between the sizes");
  }
  families.trained = check::with_fault(std::move(families.trained), *fault);
  return families;
}

check::Assumptions assumptions_of(const Experiment& e) {
  check::Assumptions assumptions;
  assumptions.norms = e.model.norm != nn::Norm::none;
  assumptions.post_norm = e.model.placement == NormPlacement::post;
  return assumptions;
}

/// Trains, and judges what was recorded.
class Check {
 public:
  Check(const Arguments& a, const train::Data& data, const Families& families,
        const std::optional<check::Fault>& fault, files::Inputs inputs)
      : a_(a),
        family_(families.planned),
        runs_(a.e, data, families.trained, fault, a.record, std::move(inputs)) {}

  /// So many seeds of each size.
  void run(Findings& found) { run(found, std::vector<long>(family_.size(), a_.e.seeds), 1); }

  /// Rounds of runs until the verdict is decided or the budget spent.
  void run(Findings& found, check::Rounds rounds) {
    for (;;) {
      if (!run(found, rounds.seeds(), rounds.share_of_errors()) || decided(found)) return;
      const std::vector<long> before = rounds.seeds();
      rounds.next(found.report.wants_larger_size);
      const double next = seconds() * (work(rounds.seeds()) / work(before) - 1);
      if (seconds() + next > a_.budget) {
        found.report.undecided.push_back(fmt::format(
            "the next round takes about {:.0f} s; --budget is {:g} s", next, a_.budget));
        return;
      }
    }
  }

  CoordinateRuns& runs() { return runs_; }

  /// Judges so many seeds of each size.
  /// Returns:  the runs that are missing; none if there is a verdict.
  std::vector<RunTask> judge_results(Findings& found) {
    const std::vector<long> seeds(family_.size(), a_.e.seeds);
    std::vector<RunTask> missing = runs_.missing(seeds);
    if (missing.empty()) judge(found, seeds, 1);
    return missing;
  }

  /// Judges rounds until the verdict is decided.
  /// Returns:  the runs that are missing; none if there is a verdict.
  std::vector<RunTask> judge_results(Findings& found, check::Rounds rounds) {
    constexpr int most = 4;
    for (int round = 1;; ++round) {
      const std::vector<RunTask> missing = runs_.missing(rounds.seeds());
      if (!missing.empty()) return missing;
      judge(found, rounds.seeds(), rounds.share_of_errors());
      if (decided(found)) return {};
      if (round == most) {
        found.report.undecided.push_back(
            fmt::format("{} rounds of tasks are made; --seeds asks for more", most));
        return {};
      }
      rounds.next(found.report.wants_larger_size);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Returns:  whether all runs were made.
  bool run(Findings& found, const std::vector<long>& seeds, double share_of_errors) {
    if (!runs_.train(seeds)) {
      stopped(found, seeds);
      return false;
    }
    judge(found, seeds, share_of_errors);
    return true;
  }

  void judge(Findings& found, const std::vector<long>& seeds, double share_of_errors) const {
    found.runs = runs_.count(seeds);
    check::Criteria criteria;
    criteria.error_rate *= share_of_errors;
    found.records = runs_.records(seeds);
    found.report = check::coordinate_check(found.records, runs_.present(family_),
                                           assumptions_of(a_.e), criteria);
  }

  /// More runs would change nothing.
  static bool decided(const Findings& found) {
    return found.report.verdict != check::Verdict::inconclusive || !found.report.missing.empty();
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// In any unit: parameters of all runs.
  double work(const std::vector<long>& seeds) const {
    double all = 0;
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      all += static_cast<double>(seeds[i]) * static_cast<double>(family_[i].plan.parameter_count());
    }
    return all;
  }

  void stopped(Findings& found, const std::vector<long>& seeds) {
    long wanted = 0;
    for (const long count : seeds) wanted += count;
    found.runs = runs_.count(seeds);
    const std::string text = fmt::format("stopped after {} of {} runs", found.runs, wanted);
    std::cerr << "coordinate_check: " << text << "; "
              << (a_.record.empty() ? "they are not saved; use --record FILE"
                                    : "the same command resumes from those in " + a_.record)
              << '\n';
    const std::vector<check::Member> present = runs_.present(family_);
    if (present.size() < 2) throw frame::Interrupted{};
    found.records = runs_.records(seeds);
    found.report = check::coordinate_check(found.records, present, assumptions_of(a_.e));
    found.report.verdict = check::Verdict::inconclusive;
    found.report.diagnosis = text;
  }

  const Arguments& a_;
  const std::vector<check::Member>& family_;
  CoordinateRuns runs_;
  Clock::time_point start_ = Clock::now();
};

/// Reads rates, decays and epsilons back from the optimizer of the reference transformer.
std::vector<std::string> read_back(const Experiment& trained, const Families& families) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < families.planned.size(); ++i) {
    const auto lines = check::check_optimizer(
        families.planned[i].plan, {"", trained.model.rate, 0.1, 1e-8},
        live_settings(settings_at(trained, trained.sizes[i], 1), families.trained[i].plan, 0.1));
    for (const std::string& line : lines) {
      all.push_back(axis_name(trained) + " " + std::to_string(trained.sizes[i]) + ": " + line);
    }
  }
  return all;
}

/// The family of the options. Records may know better.
std::vector<check::Member> family_of_options(Experiment e, const frame::Options& options,
                                             check::RecordFile& file, Findings& found) {
  found.other_model = other_model(e, file.inputs, options.inputs());
  if (!found.other_model.empty()) {
    std::cerr << fmt::format("warning: recorded with {}; judged as the model given here\n",
                             fmt::join(found.other_model, ", "));
  }
  std::vector<check::Member> family = family_of(e, train::read_data(e.model));
  if (!check::of_these_plans(file.records, family)) {
    std::cerr << "warning: recorded under other plans than those of the options; judge them by "
                 "--plans\n";
    file.records.forget_plans();
  }
  return family;
}

int report(const Experiment& e, const Findings& found, const frame::Options& options) {
  const Shown show = shown(e, found, options);
  print(e, found, show);
  if (!e.out.empty()) write(e, found, show, options);
  return check::exit_code(found.report.verdict);
}

/// Judges files of records. Nothing is trained, so that any model that has a plan will do.
int judge(Arguments& a, const frame::Options& options) {
  Experiment& e = a.e;
  check::RecordFile file = records_of(a.judge);
  Findings found;
  const std::vector<check::Member> family = a.plans.empty()
                                                ? family_of_options(e, options, file, found)
                                                : family_of_plans(a.plans, file.records, e);
  found.records = std::move(file.records);
  found.runs = file.runs.size();
  found.judged = file.inputs;
  found.report = check::coordinate_check(found.records, family, assumptions_of(e));
  return report(e, found, options);
}

/// A check of training says nothing of data from which nothing can be learned.
void name_foreign_data(const train::Data& data, const std::string& file, Findings& found) {
  if (!data.text) return;
  const std::string why = data::without_structure(data::structure_of(data.tokens.train));
  if (why.empty()) return;
  found.report.missing.push_back("a text that can be learned; of " + file + ": " + why);
  found.report.verdict = worse(found.report.verdict, check::Verdict::inconclusive);
}

/// Trains what is asked for and judges it, or makes or judges tasks.
/// Returns:  an exit code of tasks if there is nothing to report yet.
std::optional<int> train_and_judge(const Arguments& a, Check& check, const check::Rounds& rounds,
                                   const TaskFolder& folder, Findings& found,
                                   const frame::Options& options) {
  const Experiment& e = a.e;
  if (!a.tasks.asked()) {
    if (e.seeds > 0) {
      check.run(found);
    } else {
      check.run(found, rounds);
    }
    return {};
  }
  if (options.given("--run-one")) {
    const RunTask task = run_task_named(folder.run_of(a.tasks.one));
    return folder.make(a.tasks.one, [&] { return result_json(task, check.runs().make(task)); });
  }
  add_results(folder, check.runs());
  const std::vector<RunTask> missing =
      e.seeds > 0 ? check.judge_results(found) : check.judge_results(found, rounds);
  if (a.tasks.collect && missing.empty()) return {};
  print_tasks(axis_name(e), folder, missing, options);
  return a.tasks.collect ? tasks_missing : 0;
}

int run(Arguments a, const frame::Options& options) {
  Experiment& e = a.e;
  const bool usual = e.model.rate == 0;
  if (usual) e.model.rate = 1;
  const std::optional<check::Fault> fault = fault_of(a.fault);
  train::use_threads(threads_of(e.model.threads, options));
  const train::Data data = train::read_data(e.model);
  const Families asked = families_of(a, e.sizes, fault, data);

  Arguments trained = a;
  if (!a.trained_as.empty()) {
    trained.e.model.rule = a.trained_as;
    train::settle(trained.e.model);
  }
  if (usual) {
    e.model.rate =
        usual_rate(settings_at(trained.e, e.sizes.front(), 1), data, asked.trained.front().plan);
  }
  trained.e.model.rate = e.model.rate;

  Findings found;
  if (fault) found.mistake = "with " + a.fault;
  if (!a.trained_as.empty()) found.mistake = "trained as " + a.trained_as;
  files::Inputs inputs = options.inputs();
  if (fault || !options.given("--rate")) {  // they depend on the smallest model
    inputs.push_back({"smallest size", std::to_string(e.sizes.front())});
  }
  if (a.trained_as.empty()) found.optimizer = read_back(trained.e, asked);
  const check::Rounds rounds(e.sizes, e.axis != Axis::width);
  const Families all = e.seeds > 0 ? asked : families_of(a, rounds.sizes(), fault, data);
  const TaskFolder folder(a.tasks.results, "coordinate_check", inputs);
  Check check(trained, data, all, fault, std::move(inputs));
  if (const auto code = train_and_judge(a, check, rounds, folder, found, options)) return *code;
  name_foreign_data(data, e.model.text, found);
  if (!found.optimizer.empty()) found.report.verdict = check::Verdict::fail;
  return report(e, found, options);
}

void check_arguments(Arguments& a, const frame::Options& options) {
  experiment::check(a.tasks, options, {"--budget", "--record", "--judge"});
  check_plans(options);
  Experiment& e = a.e;
  if (e.base == 0) e.base = e.sizes.front();
  const double rate = e.model.rate;
  if (rate == 0) e.model.rate = 1;  // run() finds it
  experiment::check(e);
  e.model.rate = rate;
  if (e.model.seq < 2) {
    throw InvalidInput("--seq", std::to_string(e.model.seq), "at least 2",
                       "with one token, attention has nothing to choose from, and queries and keys "
                       "have no gradients");
  }
  static_cast<void>(fault_of(a.fault));
}

/// Of the first round of runs, which decides as a rule, or of --seeds of each size.
std::string expected(Arguments a, const frame::Options& options) {
  Experiment& e = a.e;
  if (!a.judge.empty()) return "no runs";
  if (e.model.rate == 0) e.model.rate = 1e-6;  // steps take as long at any rate
  train::use_threads(threads_of(e.model.threads, options));
  const train::Data data = train::read_data(e.model);
  const std::vector<check::Member> family = family_of(e, data);
  const CoordinateRuns runs(e, data, family, {}, "", {});
  const check::Rounds first(e.sizes, e.axis != Axis::width);
  std::vector<long> seeds = e.seeds > 0 ? std::vector<long>(family.size(), e.seeds) : first.seeds();
  seeds.resize(family.size());
  return cost_text(runs.expected(seeds));
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Experiment& e = a->e;
  e.model.rule = "maximal-update";
  e.model.rate = 0;
  // A tied head reads its own rows, which blurs what is predicted of it; --set tied_head=true asks for one nevertheless.
  e.model.tied_head = false;
  e.model.steps = 10;
  e.model.batch = 8;
  e.model.seq = 64;
  e.model.warmup = 0;
  e.sizes = {32, 64, 128, 256, 512};
  e.seeds = 0;
  Program program{
      "coordinate_check",
      "Does training follow the rule? Widths, depths or numbers of experts, a few steps "
      "each, with a verdict."};
  Options& o = *program.options;
  add_options(o, e);
  o.at("--axis").words({"width", "depth", "experts"});
  o.at("--rate").from(0).help(
      "learning rate (before the plan's factors; 0: a step of Adam moves no matrix of the smallest "
      "model by more than 3 %; ten times as much under SGD)");
  o.at("--sizes").of_runs();
  o.at("--seeds").from(0).of_runs().help(
      "runs of each model, with a seed each (0: as many as the verdict needs, more of the small "
      "sizes)");
  o.add("--budget", a->budget, "seconds after which no new runs begin (if --seeds is 0)")
      .above(0)
      .below(1e9)
      .of_runs();
  add_output_options(o, e, program.name);
  o.add("--record", a->record, "append what is recorded to this file (JSON lines)")
      .writes(files::try_file)
      .excludes("--judge");
  o.add("--judge", a->judge, "judge these runs and train nothing (records: JSON lines or .csv)")
      .reads()
      .repeated();
  o.add("--plans", a->plans, "plans of these models, one of each size (JSON of plan)")
      .reads()
      .repeated();
  add_task_options(o, a->tasks);
  o.group("Mistakes, to see the check fail");
  o.add("--trained-as", a->trained_as, "train by another rule")
      .names(tools::rule_id)
      .excludes("--judge");
  o.add("--fault", a->fault,
        "train with missing:INGREDIENT, twice:INGREDIENT or off:INGREDIENT:EXPONENT")
      .excludes("--judge");
  program.check = [a, &o] { check_arguments(*a, o); };
  program.expected = [a, options = program.options] { return ::expected(*a, *options); };
  program.run = [a, options = program.options](const std::vector<std::string>&) {
    return a->judge.empty() ? ::run(*a, *options) : judge(*a, *options);
  };
  return program;
}
