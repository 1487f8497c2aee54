// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/candidates.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise::dialect::detail {

/// A shape with as many axes as expected, where the others are of size 1, or those of a patch.
inline std::vector<std::int64_t> of_rank(std::vector<std::int64_t> shape, std::size_t rank,
                                         Group group) {
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() > rank && group == Group::patch_embedding) {
    const std::int64_t last = shape.back();
    shape.pop_back();
    if (last < 1 || shape.back() < 1 || shape.back() > largest_size / last) return {};
    shape.back() *= last;
  }
  if (shape.empty() && rank == 1) shape = {1};
  return shape;
}

/// Rows beyond the vocabulary that make `got` the expected shape: a multiple of 64, and less than 1024 more. 0: none.
inline std::int64_t padding_rows(const Candidate& candidate, std::vector<std::int64_t> got) {
  const std::vector<std::int64_t>& expected = candidate.tensor.shape;
  if (candidate.padded_axis < 0 || got.size() != expected.size()) return 0;
  const auto axis = static_cast<std::size_t>(candidate.padded_axis);
  const std::int64_t rows = got[axis];
  const std::int64_t more = rows - expected[axis];
  got[axis] = expected[axis];
  return got == expected && more > 0 && more < 1024 && rows % 64 == 0 ? more : 0;
}

/// Whether `actual` is the shape that a candidate expects; the complaint, or nothing. Rows beyond the
/// vocabulary become padding of `tensor`.
inline std::string fit(const Candidate& candidate, const std::vector<std::int64_t>& actual,
                       OwnerTensor& tensor) {
  const std::vector<std::int64_t>& expected = candidate.tensor.shape;
  const std::vector<std::int64_t> got = of_rank(actual, expected.size(), candidate.group);
  if (got == expected) return "";
  if (const std::int64_t more = padding_rows(candidate, got); more > 0) {
    const std::int64_t rows = expected[static_cast<std::size_t>(candidate.padded_axis)];
    for (OwnedPart& part : tensor.parts) {
      part.select.push_back({candidate.padded_axis, {{0, rows}}});
    }
    tensor.padding.push_back({candidate.padded_axis, {{rows, more}}});
    return "";
  }
  std::vector<std::int64_t> turned = got;
  if (turned.size() >= 2) std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  const bool transposed = turned == expected || padding_rows(candidate, turned) > 0;
  return sizes_text(actual) + ": expected " + sizes_text(expected) +
         (transposed ? " (hint: it is transposed)" : "");
}

}  // namespace scalewise::dialect::detail
