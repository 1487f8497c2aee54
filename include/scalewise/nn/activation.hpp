// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

namespace scalewise::nn {

enum class Activation { relu, gelu, silu };

/// Value of an activation.
/// Equation: relu max(x, 0); gelu x Φ(x), exact with erf; silu x / (1 + e^-x)
template <class Scalar>
Scalar activate(Activation kind, Scalar x) {
  switch (kind) {
    case Activation::relu:
      return x > 0 ? x : Scalar(0);
    case Activation::gelu:
      return x * Scalar(0.5) * std::erfc(-x * Scalar(0.70710678118654752440));
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

/// Derivative of activate(); that of relu at 0 is 0.
/// Equation: gelu Φ(x) + x φ(x); silu σ(x) (1 + x (1 - σ(x)))
template <class Scalar>
Scalar activation_slope(Activation kind, Scalar x) {
  switch (kind) {
    case Activation::relu:
      return x > 0 ? Scalar(1) : Scalar(0);
    case Activation::gelu:
      return Scalar(0.5) * std::erfc(-x * Scalar(0.70710678118654752440)) +
             x * std::exp(-x * x / 2) * Scalar(0.39894228040143267794);
    case Activation::silu: {
      const Scalar sigmoid = 1 / (1 + std::exp(-x));
      return sigmoid * (1 + x * (1 - sigmoid));
    }
  }
  return 1;
}

}  // namespace scalewise::nn
