// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How a program computes: the option --threads, and numbers that are almost zero.
#pragma once

#include <string>

#include "scalewise/messages/error.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace scalewise::train {

/// Uses that many threads from now on; 0 leaves it to OpenMP.
/// Throws:   InvalidInput for more than 1024, and for more than one in a program without OpenMP.
inline void use_threads(int threads) {
#ifdef _OPENMP
  if (threads > 0) omp_set_num_threads(threads);
  // A list in OMP_NUM_THREADS asks for loops within loops, on any number of threads.
  omp_set_max_active_levels(1);
  constexpr int most = 1024;
  if (const int count = omp_get_max_threads(); count > most)
    throw InvalidInput("OMP_NUM_THREADS", std::to_string(count), "at most " + std::to_string(most));
#else
  if (threads > 1) {
    throw InvalidInput("--threads", std::to_string(threads), "1", "this program has no OpenMP");
  }
#endif
}

/// Takes numbers below the smallest normal one (1e-38 as float) for zero from now on, in this thread
/// and those it starts. Gradients that vanish over a hundred layers are such numbers, and processors
/// take ten times as long for them. Where the processor has no such mode known here, nothing changes.
inline void flush_denormals() {
#ifdef __SSE2__
  constexpr unsigned results = 0x8000;
  constexpr unsigned operands = 0x0040;
  _mm_setcsr(_mm_getcsr() | results | operands);
#endif
}

}  // namespace scalewise::train
