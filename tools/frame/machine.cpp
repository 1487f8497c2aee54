// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/machine.hpp"

#include <cstdlib>
#include <string_view>

#include "frame/openblas_kernels.hpp"

#if defined(__linux__)
#include <unistd.h>
#endif
#if !defined(_WIN32)
#include <sys/resource.h>
#endif

#if defined(__GNUC__)
// Null where the program is not linked with the library.
extern "C" __attribute__((weak)) int omp_get_max_threads();
extern "C" __attribute__((weak)) const int* dnnl_version();  // major, minor and patch come first
extern "C" __attribute__((weak)) void dgemm_();  // NOLINT(readability-identifier-naming): its name
extern "C" __attribute__((weak)) char* openblas_get_corename();
extern "C" __attribute__((weak)) char* openblas_get_config();
#endif

namespace scalewise::frame {

namespace {

/// Whether these kernels of OpenBLAS have no vectors of 256 bits.
bool is_old(std::string_view kernels) {
  for (const std::string_view old :
       {"Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Core2", "Penryn", "Dunnington",
        "Atom", "Nehalem", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona", "Bobcat", "Nano"}) {
    if (kernels == old) return true;
  }
  return false;
}

}  // namespace

std::string products() {
  std::string found;
#if defined(__GNUC__)
  if (&openblas_get_config != nullptr) {
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"
    const std::size_t end = config.find(' ', config.find(' ') + 1);
    found = config.substr(0, end) + " (" + openblas_get_corename() + ")";
  } else if (&dgemm_ != nullptr) {
    found = "a BLAS";
  }
  if (&dnnl_version != nullptr) {
    const int* v = dnnl_version();
    found = "oneDNN " + std::to_string(v[0]) + "." + std::to_string(v[1]) + "." +
            std::to_string(v[2]) + (found.empty() ? "" : ", " + found);
  }
#endif
  return found.empty() ? "Eigen" : found;
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

std::string version() { return SCALEWISE_VERSION; }

int threads() {
#if defined(__GNUC__)
  if (&omp_get_max_threads != nullptr) return omp_get_max_threads();
#endif
  return 1;
}

double peak_mebibytes() {
#if defined(_WIN32)
  return 0;
#else
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);  // bytes there
#else
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
#endif
#endif
}

void choose_openblas_kernels([[maybe_unused]] char** arguments) {
#if defined(__linux__) && defined(__GNUC__)
  if (&openblas_get_corename == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  const std::string better = widest_openblas_kernels();
  if (better.empty() || !is_old(openblas_get_corename())) return;
  ::setenv("OPENBLAS_CORETYPE", better.c_str(), 0);
  ::execv("/proc/self/exe", arguments);  // where that fails, the program continues as it is
#endif
}

}  // namespace scalewise::frame
