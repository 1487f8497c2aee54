// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

/// A tensor as a file of a model describes it. Names come from the file: print them by printable().
/// Units:    offset and bytes in bytes; the offset counts from the beginning of its file.
struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // PyTorch's order: the outermost dimension first
  std::string type;                 // of its entries, as the format spells it: "BF16", "Q4_K"
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::size_t file = 0;  // its place in TensorFile::files
};

/// The contents of the headers of a model's files.
struct TensorFile {
  std::string format;                 // "safetensors", "GGUF" or "llm.c"
  std::vector<std::string> files;     // those that have the tensors
  std::vector<StoredTensor> tensors;  // in the order of the headers
  std::optional<Shape> shape = {};    // where the format tells it; safetensors never does
  std::vector<std::string> notes;     // what the shape leaves out, or why there is none
  plan::CodeFactors code = {};        // of the code that reads such files
};

namespace io {

/// The most tensors that are read; DeepSeek-V3, in 163 files, has 91991.
inline constexpr std::size_t most_tensors = std::size_t{1} << 18;

/// The most dimensions that are read.
inline constexpr std::size_t most_dimensions = 8;

}  // namespace io

namespace detail {

inline constexpr std::uint64_t largest_int64 = (std::numeric_limits<std::int64_t>::max)();

/// a b, empty where it does not fit.
inline std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) {
  if (b != 0 && a > (std::numeric_limits<std::int64_t>::max)() / b) return {};
  return a * b;
}

/// How many entries a tensor has; empty where 63 bits cannot hold it.
inline std::optional<std::int64_t> entries_of(const std::vector<std::int64_t>& shape) {
  std::optional<std::int64_t> entries = 1;
  for (const std::int64_t size : shape) {
    entries = checked_product(*entries, size);
    if (!entries) break;
  }
  return entries;
}

/// The tensors of a file, or of several, within bounds on their number and memory.
class TensorList {
 public:
  explicit TensorList(std::string format) { file_.format = std::move(format); }

  void begin_file(const std::string& path) { file_.files.push_back(path); }

  const std::string& path() const { return file_.files.back(); }
  const std::string& path_of(const StoredTensor& tensor) const { return file_.files[tensor.file]; }
  const std::vector<StoredTensor>& all() const { return file_.tensors; }
  StoredTensor& operator[](std::size_t i) { return file_.tensors[i]; }

  void reserve(std::size_t count) { file_.tensors.reserve((std::min)(count, io::most_tensors)); }

  void add(StoredTensor tensor) {
    std::vector<StoredTensor>& list = file_.tensors;
    memory_ += sizeof(StoredTensor) + tensor.name.size() + tensor.shape.size() * 8 + overhead;
    if (list.size() == io::most_tensors || memory_ > most_memory) {
      throw InvalidInput(path() + ": tensors", "(more than " + std::to_string(list.size()) + ")",
                         "at most " + std::to_string(io::most_tensors) + ", in at most " +
                             std::to_string(most_memory >> 20U) + " MiB of memory");
    }
    // By a quarter and not twofold, so that old and new elements together stay small.
    if (list.size() == list.capacity()) list.reserve(list.size() + list.size() / 4 + 16);
    tensor.file = file_.files.size() - 1;
    list.push_back(std::move(tensor));
  }

  /// The places of tensors from `first` on, sorted by `less(a, b)`, and where that is a draw by place.
  template <class Less>
  std::vector<std::uint32_t> sorted(std::size_t first, const Less& less) const {
    std::vector<std::uint32_t> places;
    places.reserve(all().size() - first);
    for (std::size_t i = first; i < all().size(); ++i) {
      places.push_back(static_cast<std::uint32_t>(i));
    }
    std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (less(all()[a], all()[b])) return true;
      return a < b && !less(all()[b], all()[a]);
    });
    return places;
  }

  /// The places of all tensors, sorted by name.
  /// Throws:   InvalidInput for a name given twice.
  std::vector<std::uint32_t> by_name() const {
    auto places = sorted(0, [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(
        places.begin(), places.end(),
        [&](std::uint32_t a, std::uint32_t b) { return all()[a].name == all()[b].name; });
    if (twice == places.end()) return places;
    const StoredTensor& tensor = all()[*std::next(twice)];
    throw InvalidInput(file_.files[tensor.file] + ": " + messages::printable(tensor.name),
                       "(given twice)", "one tensor of each name");
  }

  TensorFile take() && { return std::move(file_); }

 private:
  static constexpr std::size_t most_memory = std::size_t{32} << 20U;
  static constexpr std::size_t overhead = 32;  // of the allocations for a name and a shape

  TensorFile file_;
  std::size_t memory_ = 0;
};

}  // namespace detail

}  // namespace scalewise
