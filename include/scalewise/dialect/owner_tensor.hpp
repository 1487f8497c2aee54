// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace scalewise::dialect {

/// `count` indices of an axis from `begin`, each `step` further.
struct IndexRun {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;

  friend bool operator==(const IndexRun&, const IndexRun&) = default;
};

/// The indices of an axis that belong to one entry.
struct AxisRuns {
  int axis = 0;
  std::vector<IndexRun> runs;

  friend bool operator==(const AxisRuns&, const AxisRuns&) = default;
};

/// One entry of a plan within a tensor.
struct OwnedPart {
  std::string entry;
  std::vector<AxisRuns> select;  // empty: the whole tensor

  friend bool operator==(const OwnedPart&, const OwnedPart&) = default;
};

/// A tensor as a code base stores it, with the entries of the plan in it.
/// Shapes:   of matrices (fan-out, fan-in) where `transposed`, as most code bases store them, else
///           (rows, columns) as in the plan; slabs of all layers have one more axis before these
struct OwnerTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  bool transposed = false;
  std::vector<OwnedPart> parts;
  std::vector<AxisRuns> padding;  // rows that no entry has, to be filled with zeros
};

}  // namespace scalewise::dialect
