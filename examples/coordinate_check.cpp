// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// coordinate_check: trains the reference transformer for a few steps at several widths or depths and
// tells whether activations, gradients and updates grow as the rule predicts.
//
//   coordinate_check --rule maximal-update
//   coordinate_check --rule maximal-update --fault missing:output-multiplier

#include "scalewise/check/coordinate_check.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "check/coordinate_output.hpp"
#include "check/coordinate_run.hpp"
#include "check/experiment.hpp"
#include "check/run_progress.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/record_file.hpp"
#include "train/interrupt.hpp"
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
  return e.model.optimizer == "sgd" ? 10 * rate : rate;
}

/// Trains every size from every seed, the largest first, whole runs on each core.
check::Records run_all(const Arguments& a, const train::Data& data,
                       const std::vector<check::Member>& family,
                       const std::optional<check::Fault>& fault) {
  const Experiment& e = a.e;
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
      const auto parameters = static_cast<double>(member.plan.parameter_count());
      tasks.push_back({member.size, seed, &member.plan, parameters});
      cost += parameters;
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& x, const Task& y) { return x.cost > y.cost; });
  RunProgress progress(static_cast<long>(tasks.size()), cost, e.model.quiet);
  check::Records all;
  std::mutex mutex;
  nn::parallel_for(static_cast<Eigen::Index>(tasks.size()), [&](Eigen::Index i) {
    if (train::stop_request() != 0) return;
    const Task& task = tasks[static_cast<std::size_t>(i)];
    const double scale =
        fault ? check::scaled_gradient(*task.plan, family.front().plan, *fault) : 1;
    const check::Records records =
        record_run(settings_at(e, task.size, task.seed), data, *task.plan, task.size, scale);
    progress.ended(task.cost);
    const std::lock_guard lock(mutex);
    all.merge(records);
    if (!a.record.empty()) check::append_records(a.record, records);
  });
  return all;
}

int run(Arguments a) {
  Experiment& e = a.e;
  const bool usual = e.model.rate == 0;
  if (usual) e.model.rate = 1;
  experiment::check(e);
  // A tied head reads its own rows, which blurs what is predicted of it; --set tied_head=true asks
  // for one nevertheless.
  e.model.set.insert(e.model.set.begin(), "tied_head=false");
  const std::optional<check::Fault> fault = fault_of(a.fault);
  train::use_threads(e.model.threads);
  const train::Data data = train::read_data(e.model);
  const std::vector<check::Member> family = family_of(e, data);

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
  for (std::size_t i = 0; i < family.size(); ++i) {
    if (!a.judge.empty() || !a.trained_as.empty()) break;
    const auto lines = check::check_optimizer(
        family[i].plan, {"", e.model.rate, 0.1, 1e-8},
        live_settings(settings_at(trained, e.sizes[i], 1), wrong[i].plan, 0.1));
    for (const std::string& line : lines) {
      found.optimizer.push_back(e.axis + " " + std::to_string(e.sizes[i]) + ": " + line);
    }
  }
  check::Records records;
  if (a.judge.empty()) {
    Arguments with = a;
    with.e = trained;
    train::catch_interrupts();
    records = run_all(with, data, wrong, fault);
    if (const int signal = train::stop_request(); signal != 0) {
      std::cerr << "coordinate_check: stopped; what ended is "
                << (a.record.empty() ? "lost without --record FILE"
                                     : "in " + a.record + ", to be judged with --judge")
                << '\n';
      return 128 + signal;
    }
  }
  if (!a.judge.empty()) {
    const check::RecordFile file = check::read_records(a.judge);
    if (!file.damage.empty()) std::cerr << file.damage << '\n';
    records = file.records;
  }
  found.records = check::pooled_layers(records);
  found.report = check::coordinate_check(found.records, family,
                                         {.post_norm = e.model.placement == "post",
                                          .normalized_gradient = e.model.optimizer != "sgd"});
  if (!found.optimizer.empty()) found.report.verdict = check::Verdict::fail;
  print(e, found);
  if (!e.out.empty()) write(e, found);
  return check::exit_code(found.report.verdict);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Does training follow the rule? Widths or depths, a few steps each, with a verdict.",
               "coordinate_check"};
  Arguments a;
  a.e.model.rule = "maximal-update";
  a.e.model.rate = 0;
  a.e.model.steps = 10;
  a.e.model.batch = 8;
  a.e.model.seq = 64;
  a.e.model.warmup = 0;
  add_options(app, a.e);
  app.get_option("--rate")->description(
      "global learning rate, before the plan's factors (0: a step of Adam moves no matrix of "
      "the smallest model by more than 3 %; ten times as much under SGD)");
  app.add_option("--trained-as", a.trained_as, "train by another rule, to see the check fail")
      ->group("Rule");
  app.add_option("--fault", a.fault,
                 "train with a mistake, to see the check fail: missing:INGREDIENT or "
                 "twice:INGREDIENT")
      ->group("Rule");
  app.add_option("--record", a.record, "append what is recorded to this file (JSON lines)")
      ->group("Output");
  app.add_option("--judge", a.judge, "judge these files of records; train nothing")
      ->group("Output");
  try {
    app.parse(argc, argv);
    return run(a);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const InvalidInput& error) {
    std::cerr << "coordinate_check: " << error.what() << '\n';
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "coordinate_check: not enough memory for a model of this size\n";
    return 2;
  }
}
