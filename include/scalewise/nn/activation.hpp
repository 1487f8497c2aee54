// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/dense/matrix.hpp"

namespace scalewise::nn {

namespace detail {

/// A standard normal's distribution function Φ, given gauss = e^(-x²/2).
/// Equation: Φ(-|x|) = ½ gauss t g(t), t = 1/(1 + 0.45 |x|/√2), g a minimax polynomial of
///           erfc(z) e^(z²)/t in t
/// Accuracy: absolute 2e-7; relative 6e-7 for |x| <= 3 and 5e-6 for |x| <= 12.
/// No branch, so that compilers vectorize loops over it.
inline float normal_distribution(float x, float gauss) {
  const float t = 1.0F / (1.0F + 0.318198052F * std::abs(x));
  float g = -0.0430253765F;
  g = g * t + 0.1979837244F;
  g = g * t - 0.3141709395F;
  g = g * t + 0.1560690152F;
  g = g * t - 0.0303839201F;
  g = g * t + 0.1227239195F;
  g = g * t + 0.1747127585F;
  g = g * t + 0.2283242701F;
  g = g * t + 0.2538811843F;
  g = g * t + 0.253885333F;
  const float tail = 0.5F * gauss * t * g;
  const float sign = std::copysign(1.0F, x);
  return 0.5F * (1.0F + sign) - sign * tail;
}

/// The same in double, to full accuracy.
inline double normal_distribution(double x, double /*gauss*/) {
  return 0.5 * std::erfc(-x * 0.70710678118654752440);
}

/// Up to this many numbers at a time, so that what lies between two passes stays in cache.
inline constexpr Eigen::Index activation_chunk = 256;

// Each with the derivative where with_slope is set.

template <bool with_slope, class Scalar>
void relu(Eigen::Index n, const Scalar* x, Scalar* value, Scalar* slope) {
  for (Eigen::Index i = 0; i < n; ++i) {
    const Scalar at = x[i];
    value[i] = at < 0 ? Scalar(0) : at;  // a NaN is passed on
    if constexpr (with_slope) slope[i] = at > 0 ? Scalar(1) : at <= 0 ? Scalar(0) : at;
  }
}

template <bool with_slope, class Scalar>
void gelu(Eigen::Index n, const Scalar* x, Scalar* value, Scalar* slope) {
  Eigen::Array<Scalar, activation_chunk, 1> gauss;
  const Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>> in(x, n);
  gauss.head(n) = (Scalar(-0.5) * in * in).exp();
  const Scalar* e = gauss.data();
  for (Eigen::Index i = 0; i < n; ++i) {
    const Scalar at = x[i];
    const Scalar distribution = normal_distribution(at, e[i]);
    value[i] = at * distribution;
    if constexpr (with_slope) {
      // Beyond 100 the density is 0, whatever an exponential that stops short of 0 makes of it.
      const Scalar bounded = (std::min)((std::max)(at, Scalar(-100)), Scalar(100));
      slope[i] = distribution + bounded * e[i] * Scalar(0.39894228040143267794);
    }
  }
}

template <bool with_slope, class Scalar>
void silu(Eigen::Index n, const Scalar* x, Scalar* value, Scalar* slope) {
  Eigen::Array<Scalar, activation_chunk, 1> inverse;
  const Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>> in(x, n);
  inverse.head(n) = (-in).exp();
  const Scalar* e = inverse.data();
  for (Eigen::Index i = 0; i < n; ++i) {
    const Scalar at = x[i];
    const Scalar sigmoid = 1 / (1 + e[i]);
    value[i] = at * sigmoid;
    if constexpr (with_slope) slope[i] = sigmoid * (1 + at * (1 - sigmoid));
  }
}

template <bool with_slope, class Scalar>
void activate_chunks(Activation kind, Eigen::Index size, const Scalar* x, Scalar* value,
                     Scalar* slope) {
  for (Eigen::Index i = 0; i < size; i += activation_chunk) {
    const Eigen::Index n = (std::min)(activation_chunk, size - i);
    Scalar* slopes = with_slope ? slope + i : nullptr;
    switch (kind) {
      case Activation::relu:
        relu<with_slope>(n, x + i, value + i, slopes);
        break;
      case Activation::gelu:
        gelu<with_slope>(n, x + i, value + i, slopes);
        break;
      case Activation::silu:
        silu<with_slope>(n, x + i, value + i, slopes);
        break;
    }
  }
}

}  // namespace detail

/// Values of an activation at a row of numbers.
/// Equation: relu max(x, 0); gelu x Φ(x), exact with erf; silu x σ(x)
/// Shapes:   x, value (size)
/// Accuracy: float: absolute 5e-7 max(1, |x|); double: that of the standard library.
template <class Scalar>
void activate(Activation kind, Eigen::Index size, const Scalar* x, Scalar* value) {
  detail::activate_chunks<false, Scalar>(kind, size, x, value, nullptr);
}

/// The same with the derivatives.
/// Equation: relu 1 above 0 and else 0; gelu Φ(x) + x φ(x); silu σ(x) (1 + x (1 - σ(x)))
/// Shapes:   slope (size), which may be x and overwrites it then
template <class Scalar>
void activate(Activation kind, Eigen::Index size, const Scalar* x, Scalar* value, Scalar* slope) {
  detail::activate_chunks<true>(kind, size, x, value, slope);
}

}  // namespace scalewise::nn
