// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "scalewise/numeric/parallel.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace scalewise::numeric {

/// How many threads parallel_for() has.
inline int thread_count() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// How many jobs, of costs that fall, are better run one after the other on all threads together than each on
/// one: those by which a thread would be busy while the others have nothing left.
/// Equation: a job of cost c goes alone where c - rest/threads > c/(4 threads), rest the cost of it and of those
///           after it: what waits then is more than what its own threads lose, taken as a fifth of their time;
///           and c is at least `least`: smaller jobs are no faster on more threads
/// Shapes:   costs (jobs)
/// Units:    of costs and `least` any, the same for all
inline std::size_t jobs_that_share(const std::vector<double>& costs, int threads,
                                   double least = 0) {
  double rest = std::accumulate(costs.begin(), costs.end(), 0.0);
  std::size_t count = 0;
  for (const double cost : costs) {
    if (cost < least || !(threads * cost - rest > cost / 4)) break;
    rest -= cost;
    ++count;
  }
  return count;
}

/// Runs job(0) … job(costs.size() - 1): whole jobs on each core, but the first ones, where they take
/// longer than others can fill, one after the other with all cores in their own parallel_for().
/// Shapes:   costs (jobs)
/// Units:    of costs and `least` any, the same for all
/// Requires: costs fall. As for parallel_for(); results of a job do not depend on how many threads it has.
/// Throws:   as parallel_for().
template <class Job>
void parallel_jobs(const std::vector<double>& costs, double least, const Job& job) {
  const std::size_t alone = jobs_that_share(costs, thread_count(), least);
  for (std::size_t i = 0; i < alone; ++i) job(i);
  parallel_for(static_cast<std::ptrdiff_t>(costs.size() - alone),
               [&](std::ptrdiff_t i) { job(alone + static_cast<std::size_t>(i)); });
}

}  // namespace scalewise::numeric
