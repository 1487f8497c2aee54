// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "frame/machine.hpp"
#include "frame/signals.hpp"
#include "scalewise/numeric/jobs.hpp"

namespace scalewise::experiment {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double enough = 0.1;  // seconds, far above the clock's and the scheduler's grain

/// The mean over threads that make such a run at the same time.
double seconds_of(long size, long steps, const std::function<void(long, long)>& train) {
  const int threads = thread_count();
  std::atomic<double> sum = 0;
  parallel_for(threads, [&](std::ptrdiff_t) {
    const auto start = Clock::now();
    train(size, steps);
    sum += seconds_since(start);
  });
  if (frame::stop_requested() != 0) throw frame::Interrupted{};
  return sum / threads;
}

double seconds_of_run(const RunsOfSize& one, const std::function<void(long, long)>& train) {
  constexpr long few = 2;
  seconds_of(one.size, std::min(one.steps, few), train);  // fills caches and pages
  const double begin = seconds_of(one.size, std::min(one.steps, few), train);
  for (long many = 4 * few; many < one.steps; many *= 4) {
    const double seconds = seconds_of(one.size, many, train);
    if (seconds - begin < enough) continue;
    return begin + (seconds - begin) / static_cast<double>(many - few) *
                       static_cast<double>(one.steps - few);
  }
  return one.steps <= few ? begin : seconds_of(one.size, one.steps, train);
}

/// Of one, from as many as take long enough or as there are.
double seconds_of_one(const Repeated& repeated) {
  repeated.once();  // fills caches and pages
  for (long many = 1;; many *= 4) {
    const auto start = Clock::now();
    for (long i = 0; i < many; ++i) repeated.once();
    const double seconds = seconds_since(start);
    if (frame::stop_requested() != 0) throw frame::Interrupted{};
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
  cost.seconds += count * seconds_since(start);
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
    const Role role = role_of(entry.group);
    const bool is_product = role == Role::hidden || role == Role::output;
    const bool tied = plan.shape.tied_head.value_or(false) && entry.group == Group::token_embedding;
    if (is_product || tied) weights += static_cast<double>(entry.size());
  }
  return weights;
}

double operations_of_step(const train::Settings& s, const Plan& plan) {
  const Shape& shape = plan.shape;
  const auto tokens = static_cast<double>(s.batch * s.seq);
  const auto attention = static_cast<double>(s.seq * shape.heads * shape.head_dim * shape.depth);
  return tokens * (6 * product_weights(plan) + 12 * attention);
}

Cost cost_of(const std::vector<RunsOfSize>& sizes, const std::function<void(long, long)>& train) {
  Cost cost;
  for (const RunsOfSize& one : sizes) {
    const auto count = static_cast<double>(one.count);
    cost.runs += one.count;
    cost.operations += count * static_cast<double>(one.steps) * one.operations;
    if (one.count > 0) cost.seconds += count * seconds_of_run(one, train) / thread_count();
  }
  cost.mebibytes = frame::peak_mebibytes();
  return cost;
}

Cost cost_of(const std::vector<RunsInTurn>& sizes) {
  Cost cost;
  for (const RunsInTurn& runs : sizes) add(runs, cost);
  cost.mebibytes = frame::peak_mebibytes();
  return cost;
}

std::string cost_text(const Cost& cost) {
  return fmt::format("{} runs, {:.2g} operations, {:.0f} MiB, {:.2g} s on {} threads", cost.runs,
                     cost.operations, cost.mebibytes, cost.seconds, thread_count());
}

}  // namespace scalewise::experiment
