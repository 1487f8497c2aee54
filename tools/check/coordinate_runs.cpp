// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/coordinate_runs.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <mutex>
#include <utility>

#include "check/coordinate_run.hpp"
#include "frame/progress.hpp"
#include "frame/signals.hpp"
#include "scalewise/numeric/jobs.hpp"

namespace scalewise::experiment {

namespace {

/// Parameters of the smallest model whose runs gain as much by a second thread as parallel_jobs() assumes.
/// Measured: a step of two threads is 2.0 times as fast as one at width 32 and 512 tokens and 1.9 times at 64 and
///           256, 1.5 and 1.35 times at 64 and 32 with 128 tokens (`step --depth 2 --no-torch --threads 2`)
double least_to_share(const Experiment& e) {
  constexpr double parameters_times_tokens = 2e7;
  return parameters_times_tokens / static_cast<double>(e.model.batch * e.model.seq);
}

}  // namespace

CoordinateRuns::CoordinateRuns(const Experiment& e, const train::Data& data,
                               const std::vector<check::Member>& family,
                               const std::optional<check::Fault>& fault, const std::string& file,
                               files::Inputs inputs)
    : e_(e), data_(data), family_(family), fault_(fault), file_(file), inputs_(std::move(inputs)) {
  if (file_.empty()) return;
  all_ = check::resume_records(file_, inputs_);
  if (!all_.damage.empty()) std::cerr << all_.damage << '\n';
}

check::Run CoordinateRuns::run_of(const RunTask& task) const {
  return {task.size, static_cast<std::uint64_t>(e_.before_seeds + task.seed)};
}

const check::Member& CoordinateRuns::member(long size) const {
  return *std::find_if(family_.begin(), family_.end(),
                       [&](const check::Member& one) { return one.size == size; });
}

Cost CoordinateRuns::expected(const std::vector<long>& seeds) const {
  std::vector<RunsOfSize> sizes;
  for (std::size_t i = 0; i < family_.size(); ++i) {
    const train::Settings s = settings_at(e_, family_[i].size, 1);
    sizes.push_back({family_[i].size, seeds[i], s.steps, operations_of_step(s, family_[i].plan)});
  }
  return cost_of(sizes, [&](long size, const AfterStep& after_step) {
    static_cast<void>(
        record_run(settings_at(e_, size, 1), data_, member(size).plan, size, 1, after_step));
  });
}

std::vector<RunTask> CoordinateRuns::missing(const std::vector<long>& seeds) const {
  std::vector<RunTask> tasks;
  for (std::size_t i = family_.size(); i-- > 0;) {
    for (long seed = 1; seed <= seeds[i]; ++seed) {
      const RunTask task{family_[i].size, seed};
      if (!all_.runs.contains(run_of(task))) tasks.push_back(task);
    }
  }
  return tasks;
}

check::Records CoordinateRuns::make(const RunTask& task) const {
  const Plan& plan = member(task.size).plan;
  const double scale = fault_ ? check::scaled_gradient(plan, family_.front().plan, *fault_) : 1;
  return record_run(settings_at(e_, task.size, task.seed), data_, plan, task.size, scale);
}

void CoordinateRuns::add(const RunTask& task, const check::Records& records) {
  all_.records.merge(records);
  all_.runs.insert(run_of(task));
}

bool CoordinateRuns::train(const std::vector<long>& seeds) {
  const std::vector<RunTask> tasks = missing(seeds);
  const std::size_t resumed = count(seeds);
  if (!file_.empty() && resumed > 0 && !frame::quiet) {
    std::cerr << "resumed with " << resumed << " finished runs\n";
  }
  std::vector<double> costs;
  double cost = 0;
  for (const RunTask& task : tasks) {
    costs.push_back(static_cast<double>(member(task.size).plan.parameter_count()));
    cost += costs.back();
  }
  frame::Progress progress("runs", static_cast<long>(tasks.size()), cost);
  std::mutex mutex;
  numeric::parallel_jobs(costs, least_to_share(e_), [&](std::size_t i) {
    if (frame::stop_requested() != 0) return;
    const check::Records records = make(tasks[i]);
    progress.done(costs[i]);
    const std::lock_guard lock(mutex);
    add(tasks[i], records);
    if (!file_.empty()) check::append_records(file_, records, inputs_);
  });
  return frame::stop_requested() == 0;
}

check::Records CoordinateRuns::records(const std::vector<long>& seeds) const {
  check::Records wanted;
  const auto is_wanted = [&](const check::Run& run) {
    for (std::size_t i = 0; i < family_.size(); ++i) {
      if (family_[i].size != run.size) continue;
      return !(run_of({run.size, seeds[i]}) < run) && run_of({run.size, 0}) < run;
    }
    return false;
  };
  all_.records.for_each([&](const check::Quantity& quantity, long step, const check::Run& run,
                            const check::Moments& moments) {
    if (is_wanted(run)) wanted.add(quantity, step, run, moments);
  });
  return wanted;
}

std::size_t CoordinateRuns::count(const std::vector<long>& seeds) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < family_.size(); ++i) {
    for (long seed = 1; seed <= seeds[i]; ++seed) {
      if (all_.runs.contains(run_of({family_[i].size, seed}))) ++count;
    }
  }
  return count;
}

std::vector<check::Member> CoordinateRuns::present(const std::vector<check::Member>& of) const {
  std::vector<check::Member> members;
  for (const check::Member& member : of) {
    if (std::any_of(all_.runs.begin(), all_.runs.end(),
                    [&](const check::Run& run) { return run.size == member.size; })) {
      members.push_back(member);
    }
  }
  return members;
}

}  // namespace scalewise::experiment
