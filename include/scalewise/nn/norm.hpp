// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/nn/matrix.hpp"
#include "scalewise/nn/parallel.hpp"

namespace scalewise::nn {

enum class Norm { layer, rms, none };

/// What the backward pass of a norm needs: the normalized rows and their scales.
template <class Scalar>
struct NormCache {
  Matrix<Scalar> normalized;         // (N, C)
  Matrix<Scalar> inverse_deviation;  // (N, 1)
};

/// Normalizes every row, then applies gain and bias.
/// Equation: layer: (x - mean) / √(var + ε) * gain + bias; rms: x / √(mean x² + ε) * gain + bias
/// Shapes:   x (N, C), gain (1, C) or null, bias (1, C) or null -> y (N, C)
template <class Scalar>
void norm_forward(Norm kind, const ConstView<Scalar>& x, const ConstView<Scalar>* gain,
                  const ConstView<Scalar>* bias, Scalar epsilon, NormCache<Scalar>& cache,
                  View<Scalar> y) {
  cache.normalized.resize(x.rows(), x.cols());
  cache.inverse_deviation.resize(x.rows(), 1);
  parallel_tiles(x.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
    for (Eigen::Index i = begin; i < begin + rows; ++i) {
      auto normalized = cache.normalized.row(i);
      const Scalar mean = kind == Norm::layer ? x.row(i).mean() : Scalar(0);
      normalized = x.row(i).array() - mean;
      const Scalar square = normalized.squaredNorm() / static_cast<Scalar>(x.cols());
      const Scalar inverse = 1 / std::sqrt(square + epsilon);
      cache.inverse_deviation(i, 0) = inverse;
      normalized *= inverse;
      if (gain != nullptr) {
        y.row(i) = normalized.cwiseProduct(gain->row(0));
      } else {
        y.row(i) = normalized;
      }
      if (bias != nullptr) y.row(i) += bias->row(0);
    }
  });
}

/// Gradient of norm_forward.
/// Equation: g = dy * gain; dx = inverse * (g - mean g [layer only] - normalized * mean(g * normalized))
/// Shapes:   dy (N, C) -> dx (N, C), dgain (1, C), dbias (1, C)
/// Writes:   overwrites dx, accumulates into dgain and dbias.
template <class Scalar>
void norm_backward(Norm kind, const ConstView<Scalar>& dy, const ConstView<Scalar>* gain,
                   const NormCache<Scalar>& cache, View<Scalar> dx, View<Scalar>* dgain,
                   View<Scalar>* dbias) {
  const auto width = static_cast<Scalar>(dy.cols());
  parallel_tiles(dy.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
    for (Eigen::Index i = begin; i < begin + rows; ++i) {
      const auto normalized = cache.normalized.row(i);
      if (gain != nullptr) {
        dx.row(i) = dy.row(i).cwiseProduct(gain->row(0));
      } else {
        dx.row(i) = dy.row(i);
      }
      const Scalar mean = kind == Norm::layer ? dx.row(i).sum() / width : Scalar(0);
      const Scalar along = dx.row(i).dot(normalized) / width;
      dx.row(i) = cache.inverse_deviation(i, 0) *
                  (dx.row(i).array() - mean - normalized.array() * along).matrix();
    }
  });
  if (dgain != nullptr) *dgain += dy.cwiseProduct(cache.normalized).colwise().sum();
  if (dbias != nullptr) *dbias += dy.colwise().sum();
}

/// Scales every row to unit length.
/// Equation: y = x / ‖x‖
/// Shapes:   x (N, C) -> y (N, C), inverse_length (N, 1)
template <class Scalar>
void unit_forward(const ConstView<Scalar>& x, View<Scalar> y, View<Scalar> inverse_length) {
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    inverse_length(i, 0) = 1 / x.row(i).norm();
    y.row(i) = x.row(i) * inverse_length(i, 0);
  }
}

/// Gradient of unit_forward.
/// Equation: dx = (dy - y (y·dy)) / ‖x‖
/// Writes:   overwrites dx, which may be dy.
template <class Scalar>
void unit_backward(const ConstView<Scalar>& dy, const ConstView<Scalar>& y,
                   const ConstView<Scalar>& inverse_length, View<Scalar> dx) {
  for (Eigen::Index i = 0; i < y.rows(); ++i) {
    const Scalar along = y.row(i).dot(dy.row(i));
    dx.row(i) = (dy.row(i) - y.row(i) * along) * inverse_length(i, 0);
  }
}

}  // namespace scalewise::nn
