// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

namespace scalewise::frame {

/// The level of x86-64 that this processor has: 4 as in -march=x86-64-v4, …; 1 for any processor.
/// Source:   System V Application Binary Interface, AMD64 Architecture Processor Supplement, Table 3.1
/// Deviation: asks for what compilers make most use of. No processor has that and lacks the rest of its level.
inline int processor_level() {
#if defined(__GNUC__) && defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) return 1;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2")) {
    return 2;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return 3;
  }
  return 4;
#else
  return 1;
#endif
}

}  // namespace scalewise::frame
