// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dense/matrix.hpp"
#include "scalewise/dense/memory.hpp"

namespace scalewise::dense {

/// A matrix for results that are computed again in every pass. Its memory only grows, so that a second
/// pass of the same sizes allocates nothing. Entries of a new shape are not initialized.
/// Shapes:   (rows, columns) as shape() was last called, (0, 0) before
template <class Scalar>
class Buffer {
 public:
  /// The buffer in this shape, to be written.
  View<Scalar> shape(Eigen::Index rows, Eigen::Index columns) {
    if (rows * columns > storage_.size()) {
      storage_ = {};  // before more is asked for
      storage_ = Memory<Scalar>(rows * columns, Contents::any);
    }
    rows_ = rows;
    columns_ = columns;
    return view();
  }

  View<Scalar> view() { return {storage_.data(), rows_, columns_, Eigen::OuterStride<>(columns_)}; }
  ConstView<Scalar> read() const {
    return {storage_.data(), rows_, columns_, Eigen::OuterStride<>(columns_)};
  }
  /// All entries in a row.
  auto entries() {
    return Eigen::Map<Eigen::Array<Scalar, 1, Eigen::Dynamic>, Eigen::AlignedMax>(storage_.data(),
                                                                                  rows_ * columns_);
  }
  Eigen::Index rows() const { return rows_; }
  Eigen::Index cols() const { return columns_; }

 private:
  Memory<Scalar> storage_;
  Eigen::Index rows_ = 0;
  Eigen::Index columns_ = 0;
};

}  // namespace scalewise::dense
