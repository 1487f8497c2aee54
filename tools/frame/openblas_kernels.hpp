// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// OpenBLAS takes a processor that is newer than itself for an old one, whose kernels are several times slower.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

// Null where the program is not linked with the library.
extern "C" __attribute__((weak)) char* openblas_get_corename();

namespace scalewise::frame {

/// OpenBLAS's name for kernels with the widest vectors that the processor has. Empty where they are no wider than
/// all x86-64 processors have.
inline std::string widest_openblas_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return {};
}

/// Restarts the program where OpenBLAS chose kernels without vectors of 256 bits on a processor that has them.
/// OPENBLAS_CORETYPE in the environment is left alone.
inline void choose_openblas_kernels(char** arguments) {
  if (&openblas_get_corename == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const std::string better = widest_openblas_kernels();
  for (const std::string_view old :
       {"Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Core2", "Penryn", "Dunnington",
        "Atom", "Nehalem", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat", "Nano"}) {
    if (better.empty() || old != openblas_get_corename()) continue;
    ::setenv("OPENBLAS_CORETYPE", better.c_str(), 0);
    ::execv("/proc/self/exe", arguments);  // where that fails, the program continues as it is
  }
}

}  // namespace scalewise::frame
