// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#ifdef EIGEN_USE_BLAS
/// OpenBLAS has this function, another BLAS may not.
extern "C" __attribute__((weak)) void openblas_set_num_threads(int count);
#endif

namespace scalewise::nn {

/// Keeps a BLAS behind Eigen to the thread that calls it: products are already cut into tiles, one
/// thread each, and threads of its own would make results depend on their number. Does nothing
/// where Eigen computes products itself. Another BLAS than OpenBLAS has to be told by its own means.
inline void keep_blas_to_one_thread() {
#ifdef EIGEN_USE_BLAS
  if (&openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
#endif
}

}  // namespace scalewise::nn
