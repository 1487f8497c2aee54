// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "frame/signals.hpp"

namespace scalewise::experiment {

/// Calls measure(size, seed) for every size and the seeds 1, 2, …, all sizes of a seed first, until
/// the program is asked to stop.
/// Returns:  how many runs there were.
/// Throws:   frame::Interrupted when no seed has all sizes.
template <class Measure>
long for_each_run(const std::vector<long>& sizes, long seeds, const Measure& measure) {
  long runs = 0;
  for (long seed = 1; seed <= seeds; ++seed) {
    for (const long size : sizes) {
      if (frame::stop_requested() != 0) {
        if (seed == 1) throw frame::Interrupted{};
        return runs;
      }
      measure(size, seed);
      ++runs;
    }
  }
  return runs;
}

}  // namespace scalewise::experiment
