// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <type_traits>

namespace scalewise::nn {

/// Dense matrices, row-major: a row is a token, a column a feature.
template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A block of somebody else's matrix, to write and to read.
template <class Scalar>
using View = Eigen::Map<Matrix<Scalar>, 0, Eigen::OuterStride<>>;
template <class Scalar>
using ConstView = Eigen::Map<const Matrix<Scalar>, 0, Eigen::OuterStride<>>;

/// A whole matrix, to write or to read.
template <class Scalar>
View<Scalar> view(Matrix<Scalar>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}
template <class Scalar>
ConstView<Scalar> read(const Matrix<Scalar>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}
/// Rows [row, row + rows) and columns [column, column + columns) of a view.
template <class V>
V block(V v, Eigen::Index row, Eigen::Index column, Eigen::Index rows, Eigen::Index columns) {
  return {v.data() + row * v.outerStride() + column, rows, columns,
          Eigen::OuterStride<>(v.outerStride())};
}

}  // namespace scalewise::nn
