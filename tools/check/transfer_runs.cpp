// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/transfer_runs.hpp"

#include <algorithm>
#include <atomic>
#include <iostream>
#include <utility>

#include "check/final_loss.hpp"
#include "check/network_plan.hpp"
#include "frame/progress.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/plan/fingerprint.hpp"

namespace scalewise::experiment {

namespace {

train::Settings settings_of(const Experiment& e, const check::SweepTask& task) {
  train::Settings s = settings_at(e, task.size, task.seed);
  (tunes_decay(e) ? s.weight_decay : s.rate) =
      check::RateRun{.octave = task.octave}.rate(centre(e));
  if (s.warmup < 0) s.warmup = s.steps / 20;
  return s;
}

files::Inputs inputs_of_runs(const Experiment& e, const train::Data& data,
                             const frame::Options& options) {
  const train::Settings s = settings_of(e, {.size = e.base, .octave = 0, .seed = 1});
  files::Inputs inputs = options.inputs();
  std::erase_if(inputs, [](const auto& input) { return is_of_table(input.name.substr(2)); });
  inputs.push_back({"plan", plan::plan_fingerprint(network_plan(s, data))});
  return inputs;
}

/// Makes every plan once, so that none is refused later.
std::map<long, double> costs_of(const Experiment& e, const train::Data& data) {
  std::map<long, double> costs;
  for (const long size : e.sizes) {
    const train::Settings s = settings_of(e, {.size = size, .octave = 0, .seed = 1});
    train::check(s);
    const Plan plan = network_plan(s, data);
    costs[size] = static_cast<double>(plan.parameter_count()) * static_cast<double>(s.steps) *
                  static_cast<double>(s.batch) * static_cast<double>(s.seq);
  }
  return costs;
}

}  // namespace

TransferRuns::TransferRuns(const Experiment& e, const frame::Options& options,
                           const std::string& journal)
    : e_(e),
      data_(train::read_data(e.model)),
      inputs_(inputs_of_runs(e, data_, options)),
      costs_(costs_of(e, data_)),
      journal_(journal, inputs_) {
  if (!journal_.damage().empty()) std::cerr << journal_.damage() << '\n';
  if (!finished().empty() && !frame::quiet) {
    std::cerr << "resumed with " << finished().size() << " finished runs\n";
  }
}

std::vector<check::SweepSize> TransferRuns::seeds_of(long seeds) const {
  std::vector<double> costs;
  for (const long size : e_.sizes) costs.push_back(costs_.at(size));
  return check::allocate(e_.sizes, costs, seeds);
}

std::vector<check::SweepTask> TransferRuns::usual(long seeds) const {
  std::vector<check::SweepTask> tasks;
  for (const check::SweepSize& size : seeds_of(seeds)) {
    tasks.insert(tasks.end(), static_cast<std::size_t>(check::expected_runs(size)),
                 {.size = size.size});
  }
  return tasks;
}

Cost TransferRuns::expected(long seeds) const {
  std::vector<RunsOfSize> sizes;
  for (const check::SweepSize& size : seeds_of(seeds)) {
    const train::Settings s = settings_of(e_, {.size = size.size, .octave = 0, .seed = 1});
    const Plan plan = network_plan(s, data_);
    long count = check::expected_runs(size);
    for (const check::RateRun& run : finished()) count -= run.size == size.size ? 1 : 0;
    sizes.push_back({size.size, std::max(count, 0L), s.steps, operations_of_step(s, plan)});
  }
  return cost_of(sizes, [&](long size, const AfterStep& after_step) {
    static_cast<void>(
        final_loss(settings_of(e_, {.size = size, .octave = 0, .seed = 1}), data_, after_step));
  });
}

std::vector<check::SweepTask> TransferRuns::longest_first(
    std::vector<check::SweepTask> tasks) const {
  std::stable_sort(tasks.begin(), tasks.end(), [&](const auto& a, const auto& b) {
    return costs_.at(a.size) > costs_.at(b.size);
  });
  return tasks;
}

void TransferRuns::make(std::vector<check::SweepTask> tasks, double deadline) {
  tasks = longest_first(std::move(tasks));
  double cost = 0;
  for (const check::SweepTask& task : tasks) cost += costs_.at(task.size);
  frame::Progress progress("runs", static_cast<long>(tasks.size()), cost);
  std::atomic<bool> failed = false;
  numeric::parallel_for(static_cast<Eigen::Index>(tasks.size()), [&](Eigen::Index i) {
    const check::SweepTask& task = tasks[static_cast<std::size_t>(i)];
    if (failed || times_.elapsed() + times_.seconds(task.size) > deadline) return;
    try {
      if (make_one(task)) progress.done(costs_.at(task.size));
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

std::optional<double> TransferRuns::loss(const check::SweepTask& task) const {
  return final_loss(settings_of(e_, task), data_);
}

bool TransferRuns::make_one(const check::SweepTask& task) {
  const auto start = RunTimes::Clock::now();
  const std::optional<double> found = loss(task);
  if (!found) return false;
  times_.add(task.size, RunTimes::seconds_since(start));
  journal_.append({task.size, task.octave, task.seed, *found});
  return true;
}

}  // namespace scalewise::experiment
