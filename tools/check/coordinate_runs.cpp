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

struct Task {
  const check::Member* member;
  long seed;
  double cost;
};

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
                               Inputs inputs)
    : e_(e), data_(data), family_(family), fault_(fault), file_(file), inputs_(std::move(inputs)) {
  if (file_.empty()) return;
  all_ = check::resume_records(file_, inputs_);
  if (!all_.damage.empty()) std::cerr << all_.damage << '\n';
}

check::Run CoordinateRuns::run_at(long size, long seed) const {
  return {size, static_cast<std::uint64_t>(e_.before_seeds + seed)};
}

bool CoordinateRuns::train(const std::vector<long>& seeds) {
  std::vector<Task> tasks;
  double cost = 0;
  long resumed = 0;
  for (std::size_t i = 0; i < family_.size(); ++i) {
    for (long seed = 1; seed <= seeds[i]; ++seed) {
      if (all_.runs.contains(run_at(family_[i].size, seed))) {
        ++resumed;
        continue;
      }
      const auto parameters = static_cast<double>(family_[i].plan.parameter_count());
      tasks.push_back({&family_[i], seed, parameters});
      cost += parameters;
    }
  }
  if (!file_.empty() && resumed > 0 && !frame::quiet()) {
    std::cerr << "resumed with " << resumed << " finished runs\n";
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& x, const Task& y) { return x.cost > y.cost; });
  frame::Progress progress("runs", static_cast<long>(tasks.size()), cost);
  std::mutex mutex;
  const check::Member& first = family_.front();
  std::vector<double> costs;
  for (const Task& task : tasks) costs.push_back(task.cost);
  parallel_jobs(costs, least_to_share(e_), [&](std::size_t i) {
    if (frame::stop_requested() != 0) return;
    const Task& task = tasks[i];
    const long size = task.member->size;
    const double scale =
        fault_ ? check::scaled_gradient(task.member->plan, first.plan, *fault_) : 1;
    const check::Records records =
        record_run(settings_at(e_, size, task.seed), data_, task.member->plan, size, scale);
    progress.done(task.cost);
    const std::lock_guard lock(mutex);
    all_.records.merge(records);
    all_.runs.insert(run_at(size, task.seed));
    if (!file_.empty()) check::append_records(file_, records, inputs_);
  });
  return frame::stop_requested() == 0;
}

check::Records CoordinateRuns::records(const std::vector<long>& seeds) const {
  check::Records wanted;
  const auto is_wanted = [&](const check::Run& run) {
    for (std::size_t i = 0; i < family_.size(); ++i) {
      if (family_[i].size != run.size) continue;
      return !(run_at(run.size, seeds[i]) < run) && run_at(run.size, 0) < run;
    }
    return false;
  };
  for (const auto& [quantity, steps] : all_.records.all()) {
    for (const auto& [step, runs] : steps) {
      for (const auto& [run, moments] : runs) {
        if (is_wanted(run)) wanted.add(quantity, step, run, moments);
      }
    }
  }
  return wanted;
}

std::size_t CoordinateRuns::count(const std::vector<long>& seeds) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < family_.size(); ++i) {
    for (long seed = 1; seed <= seeds[i]; ++seed) {
      if (all_.runs.contains(run_at(family_[i].size, seed))) ++count;
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
