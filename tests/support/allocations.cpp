// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "support/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> count = 0;

void add_one() { count.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers need malloc and operator new for themselves.
#elif defined(__GLIBC__)

#include <cerrno>

// A definition in the program replaces that of the C library, also for shared libraries. It calls the
// C library's own allocator, so that free() fits. operator new calls malloc.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier)
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

void* malloc(std::size_t size) {
  add_one();
  return __libc_malloc(size);
}
void* calloc(std::size_t items, std::size_t size) {
  add_one();
  return __libc_calloc(items, size);
}
void* realloc(void* old, std::size_t size) {
  add_one();
  return __libc_realloc(old, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  add_one();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  add_one();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  add_one();
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
}

#else

void* operator new(std::size_t size) {
  add_one();
  if (void* block = std::malloc(size == 0 ? 1 : size)) return block;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

#endif

namespace scalewise::benchmark {

long allocation_count() { return count.load(std::memory_order_relaxed); }

const char* counted_allocations() {
  // Through volatile pointers, so that no compiler leaves the trials out.
  const long before = allocation_count();
  void* volatile by_malloc = std::malloc(64);
  const long between = allocation_count();
  void* volatile by_new = ::operator new(64);
  const long after = allocation_count();
  std::free(by_malloc);
  ::operator delete(by_new);
  if (after == between) return "nothing";
  return between == before ? "operator new" : "malloc";
}

}  // namespace scalewise::benchmark
