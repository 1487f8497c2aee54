// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/numeric/jobs.hpp"

#include <atomic>
#include <vector>

#include "support/catch.hpp"

namespace {

using scalewise::numeric::jobs_that_share;
using scalewise::numeric::parallel_jobs;

/// Time until the last of jobs is done where the first `alone` have all threads, which loses a fifth of
/// them, and each other goes to the thread that is free first.
double time_of(const std::vector<double>& costs, int threads, std::size_t alone) {
  double begin = 0;
  for (std::size_t i = 0; i < alone; ++i) begin += costs[i] / (0.8 * threads);
  std::vector<double> busy(static_cast<std::size_t>(threads), begin);
  for (std::size_t i = alone; i < costs.size(); ++i)
    *std::min_element(busy.begin(), busy.end()) += costs[i];
  return *std::max_element(busy.begin(), busy.end());
}

}  // namespace

TEST_CASE("Jobs that outlast all others have the threads to themselves") {
  CHECK(jobs_that_share({}, 2) == 0);
  CHECK(jobs_that_share({5}, 1) == 0);
  CHECK(jobs_that_share({5}, 2) == 1);
  CHECK(jobs_that_share({1, 1, 1, 1}, 2) == 0);
  CHECK(jobs_that_share({256, 64, 16, 4, 1}, 2) == 5);    // one run of each of five widths
  CHECK(jobs_that_share({8, 8, 8, 8, 8, 4, 1}, 2) == 0);  // five of the largest
  CHECK(jobs_that_share({100, 1, 1, 1, 1, 1, 1, 1, 1}, 8) == 1);
  CHECK(jobs_that_share({256, 64, 16, 4, 1}, 2, 10) == 3);  // small ones gain nothing
}

TEST_CASE("How jobs are split is near the best split") {
  const std::vector<std::vector<double>> all{
      {256, 64, 16, 4, 1},   {4, 3, 2, 1}, {9, 1, 1, 1, 1}, {5, 5, 1},
      {7, 6, 5, 4, 3, 2, 1}, {10, 9, 1},   {3, 2, 2}};
  for (const std::vector<double>& costs : all) {
    for (const int threads : {2, 3, 8}) {
      double best = time_of(costs, threads, 0);
      for (std::size_t alone = 1; alone <= costs.size(); ++alone)
        best = std::min(best, time_of(costs, threads, alone));
      CAPTURE(costs, threads);
      // Whole jobs of several sizes do not always fill the last round.
      CHECK(time_of(costs, threads, jobs_that_share(costs, threads)) <= 1.15 * best);
    }
  }
}

TEST_CASE("Every job is run once") {
  for (const std::vector<double>& costs : {std::vector<double>{}, {9, 1, 1}, {1, 1, 1, 1, 1}}) {
    std::vector<std::atomic<int>> runs(costs.size());
    parallel_jobs(costs, 0, [&](std::size_t i) { ++runs[i]; });
    for (const std::atomic<int>& count : runs) CHECK(count == 1);
  }
}
