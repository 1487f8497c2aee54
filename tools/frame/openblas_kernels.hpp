// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise::frame {

/// OpenBLAS's name for kernels with the widest vectors that the processor has. Empty where they are no wider than
/// all x86-64 processors have.
inline const char* widest_openblas_kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vl")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

/// Takes the variables for OpenBLAS with which a program restarts itself from what its own commands inherit.
void forget_blas_variables();

}  // namespace scalewise::frame
