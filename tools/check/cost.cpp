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

/// The mean over threads that make such a run at the same time.
double seconds_of(long size, long steps, const std::function<void(long, long)>& train) {
  using Clock = std::chrono::steady_clock;
  const int threads = thread_count();
  std::atomic<double> sum = 0;
  parallel_for(threads, [&](std::ptrdiff_t) {
    const auto start = Clock::now();
    train(size, steps);
    sum += std::chrono::duration<double>(Clock::now() - start).count();
  });
  if (frame::stop_requested() != 0) throw frame::Interrupted{};
  return sum / threads;
}

double seconds_of_run(const RunsOfSize& one, const std::function<void(long, long)>& train) {
  constexpr long few = 2;
  constexpr double enough = 0.1;  // seconds, far above the clock's and the scheduler's grain
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

}  // namespace

double operations_of_step(const train::Settings& s, const Plan& plan) {
  double weights = 0;
  for (const Entry& entry : plan.entries) {
    const Role role = role_of(entry.group);
    const bool is_product = role == Role::hidden || role == Role::output;
    const bool tied = plan.shape.tied_head.value_or(false) && entry.group == Group::token_embedding;
    if (is_product || tied) weights += static_cast<double>(entry.size());
  }
  const Shape& shape = plan.shape;
  const auto tokens = static_cast<double>(s.batch * s.seq);
  const auto attention = static_cast<double>(s.seq * shape.heads * shape.head_dim * shape.depth);
  return tokens * (6 * weights + 12 * attention);
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

std::string cost_text(const Cost& cost) {
  return fmt::format("{} runs, {:.2g} operations, {:.0f} MiB, {:.2g} s on {} threads", cost.runs,
                     cost.operations, cost.mebibytes, cost.seconds, thread_count());
}

}  // namespace scalewise::experiment
