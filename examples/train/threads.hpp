// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The option --threads.
#pragma once

#include <string>

#include "scalewise/core/error.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace scalewise::train {

/// Uses that many threads from now on; 0 leaves it to OpenMP.
/// Throws:   InvalidInput for more than one in a program without OpenMP.
inline void use_threads(int threads) {
#ifdef _OPENMP
  if (threads > 0) omp_set_num_threads(threads);
#else
  if (threads > 1) {
    throw InvalidInput("--threads", std::to_string(threads), "1", "this program has no OpenMP");
  }
#endif
}

}  // namespace scalewise::train
