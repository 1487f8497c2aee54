// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace scalewise::check {

/// A dense row-major matrix in somebody else's memory.
template <class Scalar>
struct MatrixView {
  const Scalar* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;

  const Scalar* row(std::size_t i) const { return data + i * columns; }
};

}  // namespace scalewise::check
