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

/// Whether `actual` is the shape that a candidate expects; the complaint, or nothing. Rows beyond the
/// vocabulary become padding of `tensor`.
inline std::string fit(const Candidate& candidate, const std::vector<std::int64_t>& actual,
                       OwnerTensor& tensor) {
  const std::vector<std::int64_t>& expected = candidate.tensor.shape;
  const std::vector<std::int64_t> got = of_rank(actual, expected.size(), candidate.group);
  if (got == expected) return "";
  if (candidate.padded_axis >= 0 && got.size() == expected.size()) {
    const auto axis = static_cast<std::size_t>(candidate.padded_axis);
    std::vector<std::int64_t> rest = got;
    rest[axis] = expected[axis];
    const std::int64_t more = got[axis] - expected[axis];
    if (rest == expected && more > 0 && more < 1024 && got[axis] % 64 == 0) {
      for (OwnedPart& part : tensor.parts) {
        part.select.push_back({candidate.padded_axis, {{0, expected[axis]}}});
      }
      tensor.padding.push_back({candidate.padded_axis, {{expected[axis], more}}});
      return "";
    }
  }
  std::vector<std::int64_t> turned = expected;
  if (turned.size() >= 2) std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return sizes_text(actual) + ": expected " + sizes_text(expected) +
         (got == turned ? " (hint: it is transposed)" : "");
}

}  // namespace scalewise::dialect::detail
