// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace scalewise::frame {

/// OpenBLAS's name for kernels with the widest vectors that the processor has: it takes one that is newer than
/// itself for an old one. Empty where they are no wider than all x86-64 processors have.
inline std::string widest_openblas_kernels() {
#if defined(__GNUC__) && defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return {};
}

}  // namespace scalewise::frame
