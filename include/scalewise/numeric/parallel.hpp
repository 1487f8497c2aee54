// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace scalewise::numeric {

namespace detail {

#ifdef _OPENMP

/// The first exception of tasks that run side by side.
class FirstFailure {
 public:
  template <class Task>
  void guard(const Task& task, std::ptrdiff_t i) {
    try {
      task(i);
    } catch (...) {
#pragma omp critical(scalewise_first_failure)
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

/// Whether threads are there that have nothing to do yet: a parallel region of a single thread costs the same system
/// calls. That a single task has a region, too, keeps oneDNN to one thread in it (dense/product.hpp).
inline bool threads_are_free() { return omp_get_max_threads() > 1 && omp_in_parallel() == 0; }

#endif

}  // namespace detail

/// Runs task(0) … task(count - 1), on all cores where OpenMP is on, each by the thread that is free first.
/// Requires: tasks write to disjoint memory. Which tasks there are must not depend on the number of
///           threads: then neither does any result, to the last bit. Eigen's own threads have to be
///           off, see keep_to_one_thread().
/// Throws:   what the first task to fail has thrown, once none runs any more.
template <class Task>
void parallel_for(std::ptrdiff_t count, const Task& task) {
#ifdef _OPENMP
  if (detail::threads_are_free()) {
    detail::FirstFailure failure;
#pragma omp parallel for schedule(dynamic, 1)
    for (std::ptrdiff_t i = 0; i < count; ++i) failure.guard(task, i);
    failure.rethrow();
    return;
  }
#endif
  for (std::ptrdiff_t i = 0; i < count; ++i) task(i);
}

/// The same for short tasks that take equally long: the first thread has the first of them, and so on, so that in the
/// next loop over the same rows each finds in its cache what it has written in this one.
/// Measured: a step of width 64 takes 5.4 ms on two cores, and 6.5 ms by parallel_for()
/// Requires: as parallel_for().
/// Throws:   as parallel_for().
template <class Task>
void parallel_parts(std::ptrdiff_t count, const Task& task) {
#ifdef _OPENMP
  if (detail::threads_are_free()) {
    detail::FirstFailure failure;
#pragma omp parallel for schedule(static)
    for (std::ptrdiff_t i = 0; i < count; ++i) failure.guard(task, i);
    failure.rethrow();
    return;
  }
#endif
  for (std::ptrdiff_t i = 0; i < count; ++i) task(i);
}

/// Runs task(begin, size) over tiles of at most `tile` of `total` rows, as parallel_parts().
/// Throws:   as parallel_for().
template <class Task>
void parallel_tiles(std::ptrdiff_t total, std::ptrdiff_t tile, const Task& task) {
  parallel_parts((total + tile - 1) / tile, [&](std::ptrdiff_t i) {
    const std::ptrdiff_t begin = i * tile;
    task(begin, begin + tile < total ? tile : total - begin);
  });
}

/// Runs task(i) for each of `rows` rows, in tiles of 64, as parallel_parts().
/// Throws:   as parallel_for().
template <class Task>
void parallel_rows(std::ptrdiff_t rows, const Task& task) {
  parallel_tiles(rows, 64, [&](std::ptrdiff_t begin, std::ptrdiff_t size) {
    for (std::ptrdiff_t i = begin; i < begin + size; ++i) task(i);
  });
}

}  // namespace scalewise::numeric
