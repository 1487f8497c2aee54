// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/machine.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

// Null where the program is not linked with the library.
extern "C" __attribute__((weak)) const int* dnnl_version();  // major, minor and patch come first

namespace scalewise::frame {

std::string products() {
  if (&dnnl_version == nullptr) return "Eigen";
  const int* v = dnnl_version();
  return "oneDNN " + std::to_string(v[0]) + "." + std::to_string(v[1]) + "." + std::to_string(v[2]);
}

std::string vectors() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#elif defined(__AVX__)
  return "AVX";
#elif defined(__SSE2__)
  return "SSE2";
#elif defined(__ARM_NEON)
  return "NEON";
#else
  return "none";
#endif
}

int threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace scalewise::frame
