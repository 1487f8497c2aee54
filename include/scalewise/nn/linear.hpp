// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/nn/matrix.hpp"
#include "scalewise/nn/parallel.hpp"

namespace scalewise::nn {

/// Rows of one tile of a product; the same whatever the number of threads.
inline constexpr Eigen::Index tile_rows = 128;

/// c (+)= factor * a b
/// Shapes:   a (N, K), b (K, M) -> c (N, M)
template <class Scalar>
void multiply(Scalar factor, const ConstView<Scalar>& a, const ConstView<Scalar>& b, View<Scalar> c,
              bool accumulate = false) {
  parallel_tiles(c.rows(), tile_rows, [&](Eigen::Index row, Eigen::Index rows) {
    if (!accumulate) c.middleRows(row, rows).setZero();
    c.middleRows(row, rows).noalias() += factor * a.middleRows(row, rows) * b;
  });
}

/// c (+)= factor * aᵀ b
/// Shapes:   a (N, K), b (N, M) -> c (K, M)
template <class Scalar>
void multiply_transposed_a(Scalar factor, const ConstView<Scalar>& a, const ConstView<Scalar>& b,
                           View<Scalar> c, bool accumulate = false) {
  parallel_tiles(c.rows(), tile_rows, [&](Eigen::Index row, Eigen::Index rows) {
    if (!accumulate) c.middleRows(row, rows).setZero();
    c.middleRows(row, rows).noalias() += factor * a.middleCols(row, rows).transpose() * b;
  });
}

/// c (+)= factor * a bᵀ
/// Shapes:   a (N, K), b (M, K) -> c (N, M)
template <class Scalar>
void multiply_transposed_b(Scalar factor, const ConstView<Scalar>& a, const ConstView<Scalar>& b,
                           View<Scalar> c, bool accumulate = false) {
  parallel_tiles(c.rows(), tile_rows, [&](Eigen::Index row, Eigen::Index rows) {
    if (!accumulate) c.middleRows(row, rows).setZero();
    c.middleRows(row, rows).noalias() += factor * a.middleRows(row, rows) * b.transpose();
  });
}

}  // namespace scalewise::nn
