// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/cost.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "check/run_times.hpp"
#include "frame/signals.hpp"
#include "scalewise/numeric/jobs.hpp"

namespace scalewise::experiment {

namespace {

/// The most memory that this process has held so far; 0 where the system does not say.
double peak_mebibytes() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);  // bytes there
#else
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
#endif
}

using Clock = RunTimes::Clock;

constexpr double enough = 0.1;  // seconds, far above the clock's and the scheduler's grain

/// Of a run of `steps`, from its first ones, until those after `first` have taken long enough.
double seconds_of_run(long steps, const std::function<void(const AfterStep&)>& train) {
  constexpr long first = 3;  // in which a check records more
  const auto start = Clock::now();
  double begun = 0, left_out = 0;
  train([&](long made) {
    const double now = RunTimes::seconds_since(start);
    if (made <= first) begun = now;
    if (made <= first || now - begun < enough) return true;
    left_out =
        static_cast<double>(steps - made) * (now - begun) / static_cast<double>(made - first);
    return false;
  });
  return RunTimes::seconds_since(start) + left_out;
}

/// Of all runs of a size. As many are timed at once as there are threads; one alone runs on all of them.
double seconds_of(const RunsOfSize& one, const std::function<void(long, const AfterStep&)>& train) {
  const long together = std::min<long>(numeric::thread_count(), one.count);
  std::atomic<double> sum = 0;
  const auto time_one = [&](std::ptrdiff_t) {
    sum += seconds_of_run(one.steps, [&](const AfterStep& after) { train(one.size, after); });
  };
  if (together == 1) {
    time_one(0);
  } else {
    numeric::parallel_for(together, time_one);
  }
  if (frame::stop_requested() != 0) throw frame::Interrupted{};
  return sum / static_cast<double>(together * together) * static_cast<double>(one.count);
}

/// Of one, from as many as take long enough or as there are.
double seconds_of_one(const Repeated& repeated) {
  const auto time = [&](long many) {
    const auto start = Clock::now();
    for (long i = 0; i < many; ++i) repeated.once();
    if (frame::stop_requested() != 0) throw frame::Interrupted{};
    return RunTimes::seconds_since(start);
  };
  const double alone = time(1);
  if (alone >= 4 * enough) return alone;  // a shorter one may mostly fill caches and pages
  for (long many = 1;; many *= 4) {
    const double seconds = time(many);
    if (seconds >= enough || 4 * many > repeated.count) return seconds / static_cast<double>(many);
  }
}

/// Adds the cost of all runs of a size.
void add(const RunsInTurn& runs, Cost& cost) {
  static_cast<void>(runs.begin());  // reads files for the first time
  const auto start = Clock::now();
  const std::vector<Repeated> all = runs.begin();
  const auto count = static_cast<double>(runs.count);
  cost.runs += runs.count;
  cost.seconds += count * RunTimes::seconds_since(start);
  for (const Repeated& one : all) {
    const double times = count * static_cast<double>(one.count);
    cost.seconds += times * seconds_of_one(one);
    cost.operations += times * one.operations;
  }
}

}  // namespace

double product_weights(const Plan& plan) {
  double weights = 0;
  for (const Entry& entry : plan.entries) {
    const bool tied = plan.shape.tied_head.value_or(false) && entry.group == Group::token_embedding;
    if (architecture::reads_width(entry.group) || tied)
      weights += static_cast<double>(entry.size());
  }
  return weights;
}

double operations_of_step(const train::Settings& s, const Plan& plan) {
  const Shape& shape = plan.shape;
  const auto tokens = static_cast<double>(s.batch * s.seq);
  const auto attention = static_cast<double>(s.seq * shape.heads * shape.head_dim * shape.depth);
  return tokens * (6 * product_weights(plan) + 12 * attention);
}

Cost cost_of(const std::vector<RunsOfSize>& sizes,
             const std::function<void(long, const AfterStep&)>& train) {
  Cost cost;
  for (const RunsOfSize& one : sizes) {
    if (one.count == 0) continue;
    if (cost.runs == 0) train(one.size, [](long) { return false; });  // fills caches and pages
    cost.runs += one.count;
    cost.operations += static_cast<double>(one.count * one.steps) * one.operations;
    cost.seconds += seconds_of(one, train);
  }
  cost.mebibytes = peak_mebibytes();
  return cost;
}

Cost cost_of(const std::vector<RunsInTurn>& sizes) {
  Cost cost;
  for (const RunsInTurn& runs : sizes) add(runs, cost);
  cost.mebibytes = peak_mebibytes();
  return cost;
}

std::string cost_text(const Cost& cost) {
  return fmt::format("{} runs, {:.2g} operations, {:.0f} MiB, {:.2g} s on {} threads", cost.runs,
                     cost.operations, cost.mebibytes, cost.seconds, numeric::thread_count());
}

}  // namespace scalewise::experiment
