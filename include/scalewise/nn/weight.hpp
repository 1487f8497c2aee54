// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
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

  /// One of `copies` matrices, each after the other along the rows.
  Weight part(Eigen::Index copy, Eigen::Index copies) const {
    Weight one = *this;
    if (!present()) return one;
    one.rows_ = rows_ / copies;
    one.value_ += copy * one.rows_ * columns_;
    one.gradient_ += copy * one.rows_ * columns_;
    return one;
  }

  Scalar multiplier = 1;

 private:
  Eigen::OuterStride<> stride() const { return Eigen::OuterStride<>(columns_); }

  Scalar* value_ = nullptr;
  Scalar* gradient_ = nullptr;
  Eigen::Index rows_ = 0;
  Eigen::Index columns_ = 0;
};

/// The tiles of y = x W + b, each with its multiplier; finish(row, column, tile) works on each tile of y while it is in
/// cache.
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent -> y (N, M)
template <class Scalar, class Finish>
auto linear_tiles(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                  View<Scalar> y, Finish finish) {
  return Tiles(y, tile_sizes(y.rows(), y.cols(), false, false),
               [&w, &b, x, finish](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
                 for (Eigen::Index i = 0; b.present() && i < tile.rows(); ++i) {
                   tile.row(i) = b.multiplier * b.value().row(0).segment(column, tile.cols());
                 }
                 dense::product<Scalar>(
                     b.present() ? dense::Into::sum : dense::Into::fresh, w.multiplier,
                     dense::block(x, row, 0, tile.rows(), x.cols()),
                     dense::block(w.value(), 0, column, x.cols(), tile.cols()), tile);
                 finish(row, column, tile);
               });
}

/// The same without finish.
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent -> y (N, M)
template <class Scalar>
auto linear_tiles(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                  View<Scalar> y) {
  return linear_tiles(w, b, x, y, [](Eigen::Index, Eigen::Index, const View<Scalar>&) {});
}

/// y = x W + b, each with its multiplier.
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent -> y (N, M)
template <class Scalar>
void linear_forward(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                    View<Scalar> y) {
  side_by_side(linear_tiles(w, b, x, y));
}

/// The tiles of the gradient of W.
/// Equation: dW = m xᵀ dy
/// Shapes:   x (N, K), dy (N, M) -> dW (K, M)
template <class Scalar>
auto weight_gradient_tiles(const Weight<Scalar>& w, const ConstView<Scalar>& x,
                           const ConstView<Scalar>& dy) {
  return product_tiles(w.multiplier, dense::transposed(x), dy, w.gradient());
}

/// The tiles of the gradient of b; none where it is absent.
/// Equation: db = m Σ dy
/// Shapes:   dy (N, M) -> db (1, M)
template <class Scalar>
auto bias_gradient_tiles(const Weight<Scalar>& b, const ConstView<Scalar>& dy) {
  return sum_tiles(b.multiplier, dy, b.gradient());
}

/// A matrix and the gradient of what it makes of an input.
template <class Scalar>
struct Path {
  const Weight<Scalar>& w;
  ConstView<Scalar> dy;
};

/// The tiles of the gradient of an input of several matrices.
/// Equation: dx (+)= Σ m dy Wᵀ, added in this order
/// Shapes:   W (K, M) and dy (N, M) of each path, M its own -> dx (N, K)
template <class Scalar, std::size_t paths>
auto input_gradient_tiles(const std::array<Path<Scalar>, paths>& all, View<Scalar> dx,
                          dense::Into into = dense::Into::fresh) {
  return Tiles(dx, tile_sizes(dx.rows(), dx.cols(), false, true),
               [=](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
                 dense::Into next = into;
                 for (const Path<Scalar>& path : all) {
                   dense::product<Scalar>(
                       next, path.w.multiplier,
                       dense::block(path.dy, row, 0, tile.rows(), path.dy.cols()),
                       dense::transposed(
                           dense::block(path.w.value(), column, 0, tile.cols(), path.dy.cols())),
                       tile);
                   next = dense::Into::sum;
                 }
               });
}

/// Gradient of linear_forward.
/// Equation: dW = m xᵀ dy; db = m Σ dy; dx (+)= m dy Wᵀ
/// Shapes:   x (N, K), W (K, M), b (1, M) or absent, dy (N, M) -> dx (N, K)
/// Writes:   overwrites the gradients of W and b, and dx, or adds to dx.
template <class Scalar>
void linear_backward(const Weight<Scalar>& w, const Weight<Scalar>& b, const ConstView<Scalar>& x,
                     const ConstView<Scalar>& dy, View<Scalar> dx,
                     dense::Into into = dense::Into::fresh) {
  side_by_side(weight_gradient_tiles(w, x, dy), bias_gradient_tiles(b, dy),
               input_gradient_tiles(std::array{Path<Scalar>{w, dy}}, dx, into));
}

}  // namespace scalewise::nn
