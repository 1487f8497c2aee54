// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Properties of the tensors of any file that was accepted.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/scratch_file.hpp"
#include "scalewise/io/stored_tensor.hpp"

namespace scalewise::fuzz {

/// Tensors lie within the file and have different names; a shape can be used.
inline void check_stored(const TensorFile& file, std::uintmax_t size) {
  std::set<std::string> names;
  for (const StoredTensor& tensor : file.tensors) {
    const bool inside = tensor.offset >= 0 && tensor.bytes >= 0 &&
                        static_cast<std::uintmax_t>(tensor.offset) <= size &&
                        static_cast<std::uintmax_t>(tensor.bytes) <=
                            size - static_cast<std::uintmax_t>(tensor.offset);
    if (!inside || !names.insert(tensor.name).second || tensor.type.empty()) std::abort();
    for (const std::int64_t n : tensor.shape) {
      if (n < 0) std::abort();
    }
  }
  if (!file.shape) return;
  try {
    static_cast<void>(resolved(*file.shape));
  } catch (const InvalidInput&) {
    std::abort();
  }
}

/// The process's file, with zeros up to a size that costs no memory.
inline std::string sparse_file(std::string_view begin, std::uintmax_t size) {
  std::string path = scratch_file().with(begin);
  if (size > begin.size()) std::filesystem::resize_file(path, size);
  return path;
}

/// Bytes become a number at which programs fail.
inline std::string with_hostile_number(std::string input, std::size_t bytes, Random& random) {
  static const std::vector<std::uint64_t> numbers{
      0,           1,           2,           3,           5,           7,           8,
      12,          16,          32,          64,          65,          256,         4096,
      1ULL << 30U, 1ULL << 31U, 1ULL << 32U, 1ULL << 61U, 1ULL << 62U, 1ULL << 63U, ~0ULL};
  if (input.size() < bytes) return input;
  const std::uint64_t number = numbers[below(numbers.size(), random)];
  std::memcpy(input.data() + below(input.size() - bytes + 1, random), &number, bytes);
  return input;
}

}  // namespace scalewise::fuzz
