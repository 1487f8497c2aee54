// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>

namespace scalewise {

/// Dense matrices, row-major: a row is a token, a column a feature.
template <class Scalar = double>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A block of somebody else's matrix, to write and to read.
template <class Scalar>
using View = Eigen::Map<Matrix<Scalar>, 0, Eigen::OuterStride<>>;
/// A block of somebody else's matrix, to read.
template <class Scalar>
using ConstView = Eigen::Map<const Matrix<Scalar>, 0, Eigen::OuterStride<>>;

namespace dense {

/// A whole matrix, to write or to read.
/// Shapes:   m and the view (rows, columns)
template <class Scalar>
View<Scalar> view(Matrix<Scalar>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}
/// The same matrix, to read.
/// Shapes:   m and the view (rows, columns)
template <class Scalar>
ConstView<Scalar> read(const Matrix<Scalar>& m) {
  return {m.data(), m.rows(), m.cols(), Eigen::OuterStride<>(m.cols())};
}
/// A view, to read.
/// Shapes:   v and the result (rows, columns)
template <class Scalar>
ConstView<Scalar> read(const View<Scalar>& v) {
  return {v.data(), v.rows(), v.cols(), Eigen::OuterStride<>(v.outerStride())};
}
/// All entries of a matrix in a row, for what treats them alike.
/// Shapes:   m (rows, columns) -> (1, rows * columns), row after row
template <class Scalar>
auto entries(const Matrix<Scalar>& m) {
  return Eigen::Map<const Eigen::Array<Scalar, 1, Eigen::Dynamic>>(m.data(), m.size());
}
/// Rows [row, row + rows) and columns [column, column + columns) of a view.
template <class V>
V block(V v, Eigen::Index row, Eigen::Index column, Eigen::Index rows, Eigen::Index columns) {
  return {v.data() + row * v.outerStride() + column, rows, columns,
          Eigen::OuterStride<>(v.outerStride())};
}

}  // namespace dense

}  // namespace scalewise
