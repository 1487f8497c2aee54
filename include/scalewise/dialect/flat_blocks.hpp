// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scalewise/dialect/owner_tensor.hpp"

namespace scalewise::dialect {

/// `count` numbers that follow each other in memory, `repeats` times, each `stride` after the last.
struct FlatBlock {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  std::int64_t repeats = 1;

  friend bool operator==(const FlatBlock&, const FlatBlock&) = default;
};

/// Where the numbers of an entry lie in its tensor, for code that has a pointer and no views.
/// Shapes:   of a tensor that is contiguous, its last axis fastest
/// Requires: runs along the first axis alone, the last alone, or the first and a later one of which
///           the first has one index, and steps along the first alone, as dialects have them.
inline std::vector<FlatBlock> flat_blocks(const OwnerTensor& tensor, const OwnedPart& part) {
  const auto product = [&](std::size_t begin, std::size_t end) {
    std::int64_t size = 1;
    for (std::size_t i = begin; i < end; ++i) size *= tensor.shape[i];
    return size;
  };
  const std::size_t rank = tensor.shape.size();
  std::vector<FlatBlock> blocks{{0, product(0, rank), 0, 1}};
  std::size_t outer = 0;  // axes that have one index
  for (const AxisRuns& select : part.select) {
    const auto axis = static_cast<std::size_t>(select.axis);
    const std::int64_t inner = product(axis + 1, rank);
    const std::int64_t length = inner * tensor.shape[axis];
    const std::int64_t repeats = product(outer, axis);
    const std::int64_t begin = blocks.front().offset;
    blocks.clear();
    for (const IndexRun& run : select.runs) {
      const std::int64_t offset = begin + run.begin * inner;
      blocks.push_back(run.step == 1 ? FlatBlock{offset, run.count * inner, length, repeats}
                                     : FlatBlock{offset, inner, run.step * inner, run.count});
    }
    if (select.runs.size() == 1 && select.runs.front().count == 1) outer = axis + 1;
  }
  for (FlatBlock& block : blocks) {
    if (block.repeats == 1) block.stride = 0;
  }
  return blocks;
}

}  // namespace scalewise::dialect
