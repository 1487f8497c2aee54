// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <exception>

namespace scalewise::inline numeric {

/// Runs task(0) … task(count - 1), on all cores where OpenMP is on.
/// Requires: tasks write to disjoint memory. Which tasks there are must not depend on the number of
///           threads: then neither does any result, to the last bit. Eigen's own threads have to be
///           off, see keep_to_one_thread().
/// Throws:   what the first task to fail has thrown, once all have ended.
template <class Task>
void parallel_for(std::ptrdiff_t count, const Task& task) {
#ifdef _OPENMP
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    try {
      task(i);
    } catch (...) {
#pragma omp critical(scalewise_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
#else
  for (std::ptrdiff_t i = 0; i < count; ++i) task(i);
#endif
}

/// Runs task(begin, size) over tiles of at most `tile` of `total` rows.
/// Throws:   as parallel_for().
template <class Task>
void parallel_tiles(std::ptrdiff_t total, std::ptrdiff_t tile, const Task& task) {
  parallel_for((total + tile - 1) / tile, [&](std::ptrdiff_t i) {
    const std::ptrdiff_t begin = i * tile;
    task(begin, begin + tile < total ? tile : total - begin);
  });
}

}  // namespace scalewise::inline numeric
