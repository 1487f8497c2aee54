// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "scalewise/dense/matrix.hpp"

namespace scalewise::dense {

namespace detail {

inline constexpr std::align_val_t vector_alignment{64};
inline constexpr std::size_t huge_page = std::size_t{1} << 21;

#if defined(__linux__)
/// Pages of zeros, the first at the begin of a huge page; nullptr where there is no memory for them.
inline void* map_zeros(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  bytes = (bytes + page - 1) / page * page;
  std::size_t room = bytes + huge_page;
  void* const all =
      ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  void* begin = all;
  std::align(huge_page, bytes, begin, room);  // room is now what is left from there
  if (begin != all) ::munmap(all, bytes + huge_page - room);
  if (room > bytes) ::munmap(static_cast<std::byte*>(begin) + bytes, room - bytes);
  ::madvise(begin, bytes, MADV_HUGEPAGE);  // a system without huge pages gives others
  return begin;
}
inline void unmap(void* begin, std::size_t bytes) { ::munmap(begin, bytes); }
inline bool is_mapped(std::size_t bytes) { return bytes >= huge_page; }
#else
inline void* map_zeros(std::size_t) { return nullptr; }
inline void unmap(void*, std::size_t) {}
inline bool is_mapped(std::size_t) { return false; }
#endif

}  // namespace detail

/// The contents of new memory: zeros, or any bytes, for memory that is written before it is read.
enum class Contents { zeros, any };

/// Memory for an array of numbers that may be large.
/// Shapes:   (1, size)
/// Aligned to 64 bytes. On Linux a large array is in huge pages, where the system has them, and each takes up memory
/// only when it is written to: making the array costs nothing, and products need not wait for addresses.
/// Throws:   std::bad_alloc.
template <class Scalar>
class Memory {
 public:
  Memory() = default;
  explicit Memory(Eigen::Index size, Contents contents = Contents::zeros) : size_(size) {
    if (size == 0) return;
    if (size < 0 || size > most) throw std::bad_alloc();
    void* const found = detail::is_mapped(bytes())
                            ? detail::map_zeros(bytes())
                            : ::operator new(bytes(), detail::vector_alignment);
    if (found == nullptr) throw std::bad_alloc();
    data_ = static_cast<Scalar*>(found);
    if (contents == Contents::zeros && !detail::is_mapped(bytes())) {
      std::fill_n(data_, size, Scalar(0));
    }
  }
  Memory(const Memory& other) : Memory(other.size_, Contents::any) {
    std::copy_n(other.data_, other.size_, data_);
  }
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() {
    if (data_ == nullptr) return;
    if (detail::is_mapped(bytes())) {
      detail::unmap(data_, bytes());
    } else {
      ::operator delete(data_, detail::vector_alignment);
    }
  }

  void swap(Memory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  Eigen::Index size() const { return size_; }
  Scalar* data() { return data_; }
  const Scalar* data() const { return data_; }

  /// All numbers as one row.
  View<Scalar> row() { return {data_, 1, size_, Eigen::OuterStride<>(size_)}; }
  ConstView<Scalar> row() const { return {data_, 1, size_, Eigen::OuterStride<>(size_)}; }

 private:
  static constexpr Eigen::Index most =
      (std::numeric_limits<Eigen::Index>::max)() / Eigen::Index{2 * sizeof(Scalar)};

  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(Scalar); }

  Scalar* data_ = nullptr;
  Eigen::Index size_ = 0;
};

}  // namespace scalewise::dense
