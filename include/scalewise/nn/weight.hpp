// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/nn/linear.hpp"
#include "scalewise/nn/parameters.hpp"

namespace scalewise::nn {

/// One tensor as a layer sees it: its values, where its gradient goes, and the plan's multiplier.
/// Acts as multiplier * value. An absent tensor (a bias that the shape lacks) acts as nothing.
/// Shapes:   value() and gradient() (rows, columns) as in the plan; (0, 0) where it is absent
template <class Scalar>
class Weight {
 public:
  Weight() = default;
  Weight(Parameters<Scalar>& parameters, const Plan& plan, const std::string& name) {
    const long i = parameters.find(name);
    if (i < 0) return;
    const auto at = static_cast<std::size_t>(i);
    View<Scalar> value = parameters.value(at);
    multiplier = static_cast<Scalar>(plan.entries[at].multiplier.value);
    value_ = value.data();
    gradient_ = parameters.gradient(at).data();
    rows_ = value.rows();
    columns_ = value.cols();
  }

  bool present() const { return value_ != nullptr; }
  ConstView<Scalar> value() const { return {value_, rows_, columns_, stride()}; }
  View<Scalar> gradient() const { return {gradient_, rows_, columns_, stride()}; }

  Scalar multiplier = 1;

 private:
  Eigen::OuterStride<> stride() const { return Eigen::OuterStride<>(columns_); }

  Scalar* value_ = nullptr;
  Scalar* gradient_ = nullptr;
  Eigen::Index rows_ = 0;
  Eigen::Index columns_ = 0;
};

/// y = x W + b, each with its multiplier; finish(row, column, tile) works on each tile of y while it
/// is in cache.
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent -> y (N, M)
template <class Scalar, class Finish>
void linear_forward(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                    View<Scalar> y, const Finish& finish) {
  const TileSizes sizes = tile_sizes(y.rows(), y.cols(), false, false);
  product_tiles(y, sizes, [&](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
    if (b.present()) {
      for (Eigen::Index i = 0; i < tile.rows(); ++i) {
        tile.row(i) = b.multiplier * b.value().row(0).segment(column, tile.cols());
      }
    }
    product<Scalar>(b.present() ? Into::sum : Into::fresh, w.multiplier,
                    block(x, row, 0, tile.rows(), x.cols()),
                    block(w.value(), 0, column, x.cols(), tile.cols()), tile);
    finish(row, column, tile);
  });
}

/// The same without finish.
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent -> y (N, M)
template <class Scalar>
void linear_forward(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                    View<Scalar> y) {
  linear_forward(w, b, x, y, [](Eigen::Index, Eigen::Index, const View<Scalar>&) {});
}

/// Gradient of linear_forward.
/// Equation: dW = m xᵀ dy; db = m Σ dy; dx (+)= m dy Wᵀ
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent, dy (N, M) -> dx (N, K)
/// Writes:   overwrites the gradients of W and b, and dx, or adds to dx.
template <class Scalar>
void linear_backward(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                     const ConstView<Scalar>& dy, View<Scalar> dx, Into into = Into::fresh) {
  multiply(w.multiplier, transposed(x), dy, w.gradient());
  if (b.present()) sum_rows(b.multiplier, dy, b.gradient());
  multiply(w.multiplier, dy, transposed(w.value()), dx, into);
}

}  // namespace scalewise::nn
