// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <type_traits>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::nn {

/// Runs task(row, column, tile of c) over the tiles of a product. The tiles depend on the size of c
/// only: at most 256 x 1024, and at least two unless c is small.
/// Shapes:   c (rows, columns); a tile has at most (256, 1024)
template <class Scalar, class Task>
void product_tiles(View<Scalar> c, const Task& task) {
  const auto cut = [](Eigen::Index size, Eigen::Index parts) {
    return std::max<Eigen::Index>(16, ((size + parts - 1) / parts + 15) / 16 * 16);
  };
  const Eigen::Index rows = cut(c.rows(), std::max<Eigen::Index>(2, (c.rows() + 255) / 256));
  const Eigen::Index columns = cut(c.cols(), (c.cols() + 1023) / 1024);
  const Eigen::Index across = (c.cols() + columns - 1) / columns;
  parallel_parts((c.rows() + rows - 1) / rows * across, [&](Eigen::Index i) {
    const Eigen::Index row = i / across * rows;
    const Eigen::Index column = i % across * columns;
    task(row, column,
         block(c, row, column, (std::min)(rows, c.rows() - row),
               (std::min)(columns, c.cols() - column)));
  });
}

/// c (+)= factor a b, on all cores.
/// Shapes:   a (N, K), b (K, M) -> c (N, M)
template <class Scalar>
void multiply(Scalar factor, const std::type_identity_t<Operand<Scalar>>& a,
              const std::type_identity_t<Operand<Scalar>>& b, View<Scalar> c,
              Into into = Into::fresh) {
  product_tiles(c, [&](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
    product(into, factor, a.middle_rows(row, tile.rows()), b.middle_cols(column, tile.cols()),
            tile);
  });
}

/// sums (+)= factor * the sum of the rows of x
/// Shapes:   x (N, C) -> sums (1, C)
template <class Scalar>
void sum_rows(Scalar factor, const ConstView<Scalar>& x, View<Scalar> sums,
              bool accumulate = false) {
  parallel_tiles(x.cols(), 64, [&](Eigen::Index column, Eigen::Index columns) {
    Eigen::Array<Scalar, 1, 64> total;
    total.head(columns).setZero();
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      total.head(columns) += x.row(i).segment(column, columns).array();
    }
    auto out = sums.row(0).segment(column, columns).array();
    if (!accumulate) out.setZero();
    out += factor * total.head(columns);
  });
}

/// sums += factor * the sum of the rows of x * y, entry by entry
/// Shapes:   x, y (N, C) -> sums (1, C)
template <class Scalar>
void sum_products(Scalar factor, const ConstView<Scalar>& x, const ConstView<Scalar>& y,
                  View<Scalar> sums) {
  parallel_tiles(x.cols(), 64, [&](Eigen::Index column, Eigen::Index columns) {
    Eigen::Array<Scalar, 1, 64> total;
    total.head(columns).setZero();
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      total.head(columns) +=
          x.row(i).segment(column, columns).array() * y.row(i).segment(column, columns).array();
    }
    sums.row(0).segment(column, columns).array() += factor * total.head(columns);
  });
}

/// y = factor * x with column c times scale c
/// Shapes:   x (N, C), scale (1, C) -> y (N, C), which may be x
template <class Scalar>
void scale_columns(Scalar factor, const ConstView<Scalar>& x, const ConstView<Scalar>& scale,
                   View<Scalar> y) {
  parallel_tiles(x.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
    for (Eigen::Index i = begin; i < begin + rows; ++i) {
      y.row(i).array() = x.row(i).array() * (factor * scale.row(0).array());
    }
  });
}

}  // namespace scalewise::nn
