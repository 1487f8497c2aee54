// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// coordinate_check: trains the reference transformer for a few steps at several widths or depths and
// tells whether activations, gradients and updates grow as the rule predicts.
//
//   coordinate_check --rule maximal-update
//   coordinate_check --rule maximal-update --fault missing:output-multiplier

#include "scalewise/check/coordinate_check.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "check/coordinate_output.hpp"
#include "check/coordinate_run.hpp"
#include "check/experiment.hpp"
#include "frame/program.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/record_file.hpp"
#include "train/threads.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::experiment;

struct Arguments {
  Experiment e;
  std::string trained_as;  // another rule, to see the check fail
  std::string fault;       // missing:INGREDIENT or twice:INGREDIENT
  std::string record;
  std::vector<std::string> judge;
};

std::optional<check::Fault> fault_of(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  const std::string how = text.substr(0, colon);
  if (colon == std::string::npos || (how != "missing" && how != "twice")) {
    throw InvalidInput("--fault", printable(text), "missing:INGREDIENT or twice:INGREDIENT",
                       "for example missing:output-multiplier");
  }
  return check::Fault{value_of(check::ingredient_words, "--fault", text.substr(colon + 1)),
                      how == "twice"};
}

/// The plans of a rule for all sizes.
std::vector<check::Member> family_of(const Experiment& e, const train::Data& data) {
  std::vector<check::Member> family;
  for (const long size : e.sizes) {
    const train::Settings s = settings_at(e, size, 1);
    family.push_back({size, train::plan_of(s, train::data_shape(s, data))});
  }
  return family;
}

/// Without --rate: a step of Adam moves no matrix of the smallest model by more than 3 % of the size
/// of its entries; SGD's rate is ten times as high.
double usual_rate(const Experiment& e, const Plan& plan) {
  const auto base = train::base_deviation(settings_at(e, e.sizes.front(), 1), plan);
  double rate = 1e30;
  for (const Entry& entry : plan.entries) {
    const Role role = role_of(entry.group);
    if (role != Role::input && role != Role::hidden && role != Role::output) continue;
    double deviation = std::sqrt(entry.init_variance.value);
    if (base) deviation *= base->values[static_cast<std::size_t>(entry.group)];
    if (deviation == 0 || entry.learning_rate.value == 0) continue;
    rate = std::min(rate, 0.03 * deviation / entry.learning_rate.value);
  }
  return plan.optimizer.normalization == Normalization::none ? 10 * rate : rate;
}

/// Trains every size from every seed, the largest first, whole runs on each core. Runs that the file
/// of --record has are not repeated. Ends early when the program is asked to stop.
check::RecordFile run_all(const Arguments& a, const train::Data& data,
                          const std::vector<check::Member>& family,
                          const std::optional<check::Fault>& fault, const Inputs& inputs) {
  const Experiment& e = a.e;
  const auto wanted = [&](const check::Run& run) {
    return run.seed <= static_cast<std::uint64_t>(e.seeds) &&
           std::find(e.sizes.begin(), e.sizes.end(), run.size) != e.sizes.end();
  };
  check::RecordFile saved;
  if (!a.record.empty()) saved = check::resume_records(a.record, inputs);
  if (!saved.damage.empty()) std::cerr << saved.damage << '\n';
  check::RecordFile all;
  for (const check::Run& run : saved.runs) {
    if (wanted(run)) all.runs.insert(run);
  }
  for (const auto& [quantity, steps] : saved.records.all()) {
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) {
        if (wanted(run)) all.records.add(quantity, step, run, moments);
      }
    }
  }
  if (!all.runs.empty() && !frame::quiet()) {
    std::cerr << "resumed with " << all.runs.size() << " finished runs\n";
  }
  struct Task {
    long size;
    long seed;
    const Plan* plan;
    double cost;
  };
  std::vector<Task> tasks;
  double cost = 0;
  for (const check::Member& member : family) {
    for (long seed = 1; seed <= e.seeds; ++seed) {
      if (all.runs.contains({member.size, static_cast<std::uint64_t>(seed)})) continue;
      const auto parameters = static_cast<double>(member.plan.parameter_count());
      tasks.push_back({member.size, seed, &member.plan, parameters});
      cost += parameters;
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& x, const Task& y) { return x.cost > y.cost; });
  frame::Progress progress("runs", static_cast<long>(tasks.size()), cost);
  std::mutex mutex;
  parallel_for(static_cast<Eigen::Index>(tasks.size()), [&](Eigen::Index i) {
    if (frame::stop_requested() != 0) return;
    const Task& task = tasks[static_cast<std::size_t>(i)];
    const double scale =
        fault ? check::scaled_gradient(*task.plan, family.front().plan, *fault) : 1;
    const check::Records records =
        record_run(settings_at(e, task.size, task.seed), data, *task.plan, task.size, scale);
    progress.done(task.cost);
    const std::lock_guard lock(mutex);
    all.records.merge(records);
    all.runs.insert({task.size, static_cast<std::uint64_t>(task.seed)});
    if (!a.record.empty()) check::append_records(a.record, records, inputs);
  });
  return all;
}

/// Of --judge or of training. `family`: the sizes that are there when training was stopped.
check::Records records_of(const Arguments& a, const Experiment& trained, const train::Data& data,
                          const std::vector<check::Member>& wrong,
                          const std::optional<check::Fault>& fault, const frame::Options& options,
                          std::vector<check::Member>& family, std::string& stopped) {
  if (!a.judge.empty()) {
    const check::RecordFile file = check::read_records(a.judge);
    if (!file.damage.empty()) std::cerr << file.damage << '\n';
    return file.records;
  }
  Arguments with = a;
  with.e = trained;
  Inputs inputs = options.inputs();
  if (fault || !options.given("--rate")) {  // they depend on the smallest model
    inputs.push_back({"smallest size", std::to_string(trained.sizes.front())});
  }
  const check::RecordFile done = run_all(with, data, wrong, fault, inputs);
  const std::size_t wanted = family.size() * static_cast<std::size_t>(trained.seeds);
  if (done.runs.size() == wanted) return done.records;
  stopped = "stopped after " + std::to_string(done.runs.size()) + " of " + std::to_string(wanted) +
            " runs";
  std::cerr << "coordinate_check: " << stopped << "; "
            << (a.record.empty() ? "they are not saved; use --record FILE"
                                 : "the same command goes on with those in " + a.record)
            << '\n';
  std::erase_if(family, [&](const check::Member& member) {
    return std::none_of(done.runs.begin(), done.runs.end(),
                        [&](const check::Run& run) { return run.size == member.size; });
  });
  if (family.size() < 2) throw frame::Interrupted{};
  return done.records;
}

int run(Arguments a, const frame::Options& options) {
  Experiment& e = a.e;
  const bool usual = e.model.rate == 0;
  if (usual) e.model.rate = 1;
  // A tied head reads its own rows, which blurs what is predicted of it; --set tied_head=true asks
  // for one nevertheless.
  e.model.set.insert(e.model.set.begin(), "tied_head=false");
  const std::optional<check::Fault> fault = fault_of(a.fault);
  train::use_threads(e.model.threads);
  const train::Data data = train::read_data(e.model);
  std::vector<check::Member> family = family_of(e, data);

  Experiment trained = e;
  if (!a.trained_as.empty()) trained.model.rule = a.trained_as;
  std::vector<check::Member> wrong = family_of(trained, data);
  if (fault) {
    if (!check::changes(wrong, *fault)) {
      throw InvalidInput("--fault", a.fault, "a part of the rule that differs between the sizes");
    }
    const Plan first = wrong.front().plan;
    for (check::Member& member : wrong) member.plan = with_fault(member.plan, first, *fault);
  }
  if (usual) e.model.rate = usual_rate(e, wrong.front().plan);
  trained.model.rate = e.model.rate;

  Findings found;
  if (fault) found.mistake = "with " + a.fault;
  if (!a.trained_as.empty()) found.mistake = "trained as " + a.trained_as;
  for (std::size_t i = 0; i < family.size(); ++i) {
    if (!a.judge.empty() || !a.trained_as.empty()) break;
    const auto lines = check::check_optimizer(
        family[i].plan, {"", e.model.rate, 0.1, 1e-8},
        live_settings(settings_at(trained, e.sizes[i], 1), wrong[i].plan, 0.1));
    for (const std::string& line : lines) {
      found.optimizer.push_back(e.axis + " " + std::to_string(e.sizes[i]) + ": " + line);
    }
  }
  std::string stopped;
  found.records =
      check::pooled_layers(records_of(a, trained, data, wrong, fault, options, family, stopped));
  found.report =
      check::coordinate_check(found.records, family, {.post_norm = e.model.placement == "post"});
  if (!found.optimizer.empty()) found.report.verdict = check::Verdict::fail;
  if (!stopped.empty()) {
    found.report.verdict = check::Verdict::inconclusive;
    found.report.diagnosis = stopped;
  }
  print(e, found, options);
  if (!e.out.empty()) write(e, found, options);
  return check::exit_code(found.report.verdict);
}

}  // namespace

scalewise::frame::Program scalewise::frame::program() {
  const auto a = std::make_shared<Arguments>();
  Experiment& e = a->e;
  e.model.rule = "maximal-update";
  e.model.rate = 0;
  e.model.steps = 10;
  e.model.batch = 8;
  e.model.seq = 64;
  e.model.warmup = 0;
  Program program{"coordinate_check",
                  "Does training follow the rule? Widths or depths, a few steps each, with a "
                  "verdict."};
  Options& o = *program.options;
  add_options(o, e);
  o.at("--rate").from(0).help(
      "global learning rate, before the plan's factors (0: a step of Adam moves no matrix of the "
      "smallest model by more than 3 %; ten times as much under SGD)");
  o.at("--sizes").of_runs();
  o.at("--seeds").of_runs();
  add_output_options(o, e);
  o.add("--record", a->record, "append what is recorded to this file (JSON lines)").writes_file();
  o.add("--judge", a->judge, "judge these files of records; train nothing").reads().repeated();
  o.group("Mistakes, to see the check fail");
  o.add("--trained-as", a->trained_as, "train by another rule");
  o.add("--fault", a->fault, "train with missing:INGREDIENT or twice:INGREDIENT");
  program.check = [a] {
    if (a->e.base == 0) a->e.base = a->e.sizes.front();
    const train::Settings model = a->e.model;
    if (a->e.model.rate == 0) a->e.model.rate = 1;  // run() finds it
    experiment::check(a->e);
    a->e.model.rate = model.rate;
    static_cast<void>(fault_of(a->fault));
  };
  program.run = [a, options = program.options](const std::vector<std::string>&) {
    return ::run(*a, *options);
  };
  return program;
}
