// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>

#ifdef EIGEN_USE_BLAS
/// OpenBLAS has this function, another BLAS may not.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int count);
#endif

namespace scalewise::dense {

/// Keeps each product, of Eigen or of the BLAS that it calls, to the calling thread: products are
/// already cut into tiles, and threads of their own would make results depend on how many there
/// are. The first call sets this for the whole program; threads may call it at the same time.
/// For a BLAS other than OpenBLAS, set the number of threads by its own means.
inline void keep_to_one_thread() {
  static const bool once = [] {
    Eigen::setNbThreads(1);
#ifdef EIGEN_USE_BLAS
    if (&openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
#endif
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace scalewise::dense
