// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/machine.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <future>
#include <thread>
#include <vector>

#include "scalewise/messages/error.hpp"

// Null where the program is not linked with the library.
extern "C" __attribute__((weak)) int omp_get_max_threads();
extern "C" __attribute__((weak)) int omp_get_thread_limit();
extern "C" __attribute__((weak)) const int* dnnl_version();  // major, minor and patch come first

namespace scalewise::frame {

namespace {

/// Starts as many threads next to this one, which all exist at the same time.
/// Returns:  why that cannot be done; empty: it can.
std::string problem_of_threads(std::size_t count) {
  std::promise<void> all_started;
  const std::shared_future<void> started = all_started.get_future().share();
  std::vector<std::thread> threads;
  std::string problem;
  try {
    threads.reserve(count);
    while (threads.size() < count) threads.emplace_back([started] { started.wait(); });
  } catch (const std::exception& error) {
    problem = error.what();
  }
  all_started.set_value();
  for (std::thread& thread : threads) thread.join();
  return problem;
}

}  // namespace

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

std::string version() { return SCALEWISE_VERSION; }

int threads() { return &omp_get_max_threads != nullptr ? omp_get_max_threads() : 1; }

void try_threads(int threads) {
  constexpr int most = 1024;
  const std::string text = std::to_string(threads);
  if (threads > most) {
    throw InvalidInput("OMP_NUM_THREADS", text, "at most " + std::to_string(most));
  }
  if (&omp_get_thread_limit != nullptr) threads = (std::min)(threads, omp_get_thread_limit());
  const auto count = static_cast<std::size_t>((std::max)(threads, 1));
  if (const std::string problem = problem_of_threads(count - 1); !problem.empty()) {
    throw InvalidInput("--threads", text, "as many as the system grants", problem);
  }
}

double peak_mebibytes() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
  return static_cast<double>(usage.ru_maxrss) / (1024.0 * 1024.0);  // bytes there
#else
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
#endif
}

}  // namespace scalewise::frame
