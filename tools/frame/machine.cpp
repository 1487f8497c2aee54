// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "frame/machine.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

#include "frame/openblas_kernels.hpp"
#include "scalewise/messages/error.hpp"

// Null where the program is not linked with the library.
extern "C" __attribute__((weak)) int omp_get_max_threads();
extern "C" __attribute__((weak)) int omp_get_thread_limit();
extern "C" __attribute__((weak)) const int* dnnl_version();  // major, minor and patch come first
extern "C" __attribute__((weak)) void dgemm_();  // NOLINT(readability-identifier-naming): its name
extern "C" __attribute__((weak)) char* openblas_get_corename();
extern "C" __attribute__((weak)) char* openblas_get_config();
extern "C" __attribute__((weak)) void* blas_memory_alloc(int where);
extern "C" __attribute__((weak)) void blas_memory_free(void* memory);

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

/// Whether the products of `threads` threads find memory, which OpenBLAS then has and keeps.
/// Source:   OpenBLAS 0.3.21 on x86-64, observed: it asks for memory until it gets it; blocks of 128 MiB
bool takes_products(std::size_t threads) {
  if (&blas_memory_alloc == nullptr) return true;
  constexpr std::size_t size = (std::size_t{1} << 27) + (std::size_t{1} << 22);
  std::vector<void*> blocks(threads);
  bool room = true;
  for (void*& one : blocks) {
    one = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    room = room && one != MAP_FAILED;
  }
  for (void* one : blocks) {
    if (one != MAP_FAILED) ::munmap(one, size);
  }
  if (!room) return false;
  constexpr std::size_t at_once = 32;  // OpenBLAS complains above 50
  blocks.resize((std::min)(threads, at_once));
  for (void*& one : blocks) one = blas_memory_alloc(0);
  for (void* one : blocks) blas_memory_free(one);
  return true;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SCALEWISE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SCALEWISE_SANITIZED
#endif
#endif

// As OpenBLAS reads them, and as no user writes them.
std::array<char, 32> own_threads{"OPENBLAS_NUM_THREADS=01"};
std::array<char, 32> own_skylakex{"OPENBLAS_CORETYPE=skylakeX"};
std::array<char, 32> own_haswell{"OPENBLAS_CORETYPE=hasWell"};

#if defined(__linux__) && !defined(SCALEWISE_SANITIZED)
/// Restarts the program with variables that OpenBLAS reads while it is loaded, before any library is initialized; those
/// that the user has set stay. It starts threads and takes memory for each, though we use none of them: where it gets
/// no threads it raises SIGINT, which would pass for Ctrl-C, and where it gets no memory it never ends. And it takes a
/// processor that is newer than itself for an old one, whose kernels are several times slower.
void start_with_blas_variables(int, char** arguments, char** environment) {
  if (&openblas_get_corename == nullptr) return;
  const std::string_view widest = widest_openblas_kernels();
  static std::array<char*, 4096> changed;  // C's library has no environment yet
  std::size_t size = 0;
  bool threads = false, kernels = widest.empty();
  for (char** word = environment; *word != nullptr; ++word) {
    if (size + 3 == changed.size()) return;
    threads = threads || std::string_view(*word).starts_with("OPENBLAS_NUM_THREADS=");
    kernels = kernels || std::string_view(*word).starts_with("OPENBLAS_CORETYPE=");
    changed[size++] = *word;
  }
  if (threads && kernels) return;
  if (!threads) changed[size++] = own_threads.data();
  if (!kernels) changed[size++] = (widest == "Haswell" ? own_haswell : own_skylakex).data();
  ::execve("/proc/self/exe", arguments, changed.data());  // where that fails, it continues
}

__attribute__((section(".preinit_array"),
               used)) void (*const before_libraries)(int, char**,
                                                     char**) = start_with_blas_variables;
#endif

}  // namespace

std::string products() {
  std::string found;
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

void forget_blas_variables() {
  for (const auto& own : {own_threads, own_skylakex, own_haswell}) {
    const std::string_view text = own.data();
    const std::string name(text.substr(0, text.find('=')));
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && name + "=" + value == text) ::unsetenv(name.c_str());
  }
}

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
  if (!takes_products(count)) {
    throw InvalidInput("--threads", text, "so few that memory suffices",
                       "OpenBLAS takes 128 MiB for each");
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
