// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::nn {

enum class Norm { layer, rms, none };

/// Results that the backward pass of a norm needs besides its input.
template <class Scalar>
struct NormCache {
  dense::Buffer<Scalar> mean;               // (N, 1), 0 of rms
  dense::Buffer<Scalar> inverse_deviation;  // (N, 1)
  dense::Buffer<Scalar> partial;            // one row of gain and bias gradients per tile of rows
};

/// The gain and bias that a norm applies to normalized rows; null: none.
/// Shapes:   (1, C) each
template <class Scalar>
struct NormWeights {
  const ConstView<Scalar>* gain = nullptr;
  const ConstView<Scalar>* bias = nullptr;
};

/// The gradients that norm_backward writes, and that of a path around the norm, which it adds to x's.
/// Shapes:   x, beside (N, C); gain, bias (1, C); all but x may be null
template <class Scalar>
struct NormGradients {
  View<Scalar> x;
  View<Scalar>* gain = nullptr;
  View<Scalar>* bias = nullptr;
  const ConstView<Scalar>* beside = nullptr;
  Scalar beside_factor = 1;
};

/// Rows of one tile of a norm.
inline constexpr Eigen::Index norm_tile = 64;

namespace detail {

template <class Scalar>
void normalize_row(const ConstView<Scalar>& x, View<Scalar>& y, Eigen::Index i, Scalar mean,
                   Scalar inverse, const NormWeights<Scalar>& weights) {
  const auto [gain, bias] = weights;
  const auto in = x.row(i).array();
  auto out = y.row(i).array();
  if (gain != nullptr && bias != nullptr) {
    out = (in - mean) * inverse * gain->row(0).array() + bias->row(0).array();
  } else if (gain != nullptr) {
    out = (in - mean) * inverse * gain->row(0).array();
  } else {
    out = (in - mean) * inverse;
    if (bias != nullptr) out += bias->row(0).array();
  }
}

/// The part of a row's gradient g that a norm removes, written over the normalized row n.
/// Equation: n <- mean g [layer only] + n * mean(g * n)
template <class Gradient, class Row>
void norm_correction(Norm kind, const Gradient& g, Row& n) {
  using Scalar = typename Row::Scalar;
  const auto over = 1 / static_cast<Scalar>(n.size());
  const Scalar mean = kind == Norm::layer ? g.sum() * over : Scalar(0);
  const Scalar along = (g * n).sum() * over;
  n = n * along + mean;
}

}  // namespace detail

/// Normalizes every row, then applies gain and bias.
/// Equation: layer: (x - mean) / √(var + ε) * gain + bias; rms: x / √(mean x² + ε) * gain + bias
/// Shapes:   x (N, C) -> y (N, C)
template <class Scalar>
void norm_forward(Norm kind, const ConstView<Scalar>& x, const NormWeights<Scalar>& weights,
                  Scalar epsilon, NormCache<Scalar>& cache, View<Scalar> y) {
  View<Scalar> means = cache.mean.shape(x.rows(), 1);
  View<Scalar> inverses = cache.inverse_deviation.shape(x.rows(), 1);
  numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
    const auto in = x.row(i).array();
    const Scalar mean = kind == Norm::layer ? in.mean() : Scalar(0);
    const Scalar square = (in - mean).square().sum() / static_cast<Scalar>(x.cols());
    const Scalar inverse = 1 / std::sqrt(square + epsilon);
    means(i, 0) = mean;
    inverses(i, 0) = inverse;
    detail::normalize_row(x, y, i, mean, inverse, weights);
  });
}

/// Computes y of norm_forward again, from what that left in the cache.
/// Shapes:   as norm_forward
template <class Scalar>
void norm_again(const ConstView<Scalar>& x, const NormWeights<Scalar>& weights,
                const NormCache<Scalar>& cache, View<Scalar> y) {
  const ConstView<Scalar> means = cache.mean.read();
  const ConstView<Scalar> inverses = cache.inverse_deviation.read();
  numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
    detail::normalize_row(x, y, i, means(i, 0), inverses(i, 0), weights);
  });
}

/// Gradient of norm_forward, plus that of a path around it.
/// Equation: n = (x - mean) * inverse; g = dy * gain;
///           d.x = beside_factor * beside + inverse * (g - mean g [layer only] - n * mean(g * n))
/// Shapes:   dy, x (N, C), gain (1, C) or null
/// Writes:   overwrites d.x, which may be d.beside; accumulates into d.gain and d.bias.
template <class Scalar>
void norm_backward(Norm kind, const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                   const ConstView<Scalar>* gain, NormCache<Scalar>& cache,
                   NormGradients<Scalar> d) {
  const Eigen::Index width = dy.cols();
  const Eigen::Index tiles = (dy.rows() + norm_tile - 1) / norm_tile;
  const ConstView<Scalar> means = cache.mean.read();
  const ConstView<Scalar> inverses = cache.inverse_deviation.read();
  // Each tile has a row for its part of dgain, one for dbias, and one to work in.
  View<Scalar> partial = cache.partial.shape(3 * tiles, width);
  numeric::parallel_tiles(dy.rows(), norm_tile, [&](Eigen::Index begin, Eigen::Index rows) {
    const Eigen::Index tile = begin / norm_tile;
    auto gain_part = partial.row(3 * tile).array();
    auto bias_part = partial.row(3 * tile + 1).array();
    auto normalized = partial.row(3 * tile + 2).array();
    gain_part.setZero();
    bias_part.setZero();
    for (Eigen::Index i = begin; i < begin + rows; ++i) {
      const auto in = dy.row(i).array();
      auto out = d.x.row(i).array();
      const Scalar inverse = inverses(i, 0);
      normalized = (x.row(i).array() - means(i, 0)) * inverse;
      if (d.gain != nullptr) gain_part += in * normalized;
      if (d.bias != nullptr) bias_part += in;
      const auto finish = [&](const auto& g) {
        detail::norm_correction(kind, g, normalized);
        if (d.beside != nullptr) {
          out = d.beside_factor * d.beside->row(i).array() + inverse * (g - normalized);
        } else {
          out = inverse * (g - normalized);
        }
      };
      if (gain != nullptr) {
        finish(in * gain->row(0).array());
      } else {
        finish(in);
      }
    }
  });
  for (Eigen::Index tile = 0; tile < tiles; ++tile) {  // in order, whoever computed them
    if (d.gain != nullptr) *d.gain += partial.row(3 * tile);
    if (d.bias != nullptr) *d.bias += partial.row(3 * tile + 1);
  }
}

/// Scales every row to unit length; a row of zeros, which dropout can make, stays and gets no
/// gradient.
/// Equation: y = x / ‖x‖
/// Shapes:   x (N, C) -> y (N, C), which may be x; inverse_length (N, 1)
template <class Scalar>
void unit_forward(const ConstView<Scalar>& x, View<Scalar> y, View<Scalar> inverse_length) {
  numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
    const Scalar length = x.row(i).norm();
    inverse_length(i, 0) = length > 0 || std::isnan(length) ? 1 / length : Scalar(0);
    y.row(i) = x.row(i) * inverse_length(i, 0);
  });
}

/// Gradient of unit_forward.
/// Equation: dx = (dy - y (y·dy)) / ‖x‖
/// Shapes:   dy and y (N, C), inverse_length (N, 1) -> dx (N, C)
/// Writes:   overwrites dx, which may be dy.
template <class Scalar>
void unit_backward(const ConstView<Scalar>& dy, const ConstView<Scalar>& y,
                   const ConstView<Scalar>& inverse_length, View<Scalar> dx) {
  numeric::parallel_rows(y.rows(), [&](Eigen::Index i) {
    const Scalar along = y.row(i).dot(dy.row(i));
    dx.row(i) = (dy.row(i) - y.row(i) * along) * inverse_length(i, 0);
  });
}

}  // namespace scalewise::nn
