// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Norm and MLP from their equations, forward and backward: one number at a time, in double. Fast layers
// are compared with these.
//
// B batch, T query tokens, S key tokens, N = B*T rows, C d_model, H heads, K key heads, D head_dim,
// F d_ff. Weights are given as they act, times their multipliers; an absent one is empty.

#pragma once

#include <cmath>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/dense/matrix.hpp"
#include "scalewise/nn/norm.hpp"

namespace scalewise::test::reference {

using Eigen::Index;

inline bool present(const Matrix<double>& m) { return m.size() > 0; }
inline double factor(const Matrix<double>& m, Index c) { return present(m) ? m(0, c) : 1; }
inline double summand(const Matrix<double>& m, Index c) { return present(m) ? m(0, c) : 0; }
inline Matrix<double> zeros_like(const Matrix<double>& m) {
  return Matrix<double>::Zero(m.rows(), m.cols());
}

// ---- linear maps ---------------------------------------------------------------------------------

/// y = x W + b
inline Matrix<double> linear(const Matrix<double>& x, const Matrix<double>& w,
                             const Matrix<double>& b) {
  Matrix<double> y(x.rows(), w.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      double sum = summand(b, j);
      for (Index k = 0; k < x.cols(); ++k) sum += x(i, k) * w(k, j);
      y(i, j) = sum;
    }
  }
  return y;
}

// ---- norms ---------------------------------------------------------------------------------------

/// The divisor of row i of x, after its mean was taken off. An rms norm takes off nothing.
struct RowMoments {
  double mean = 0;
  double deviation = 0;

  RowMoments(nn::Norm kind, double epsilon, const Matrix<double>& x, Index i) {
    const auto width = static_cast<double>(x.cols());
    for (Index c = 0; kind == nn::Norm::layer && c < x.cols(); ++c) mean += x(i, c) / width;
    double square = 0;
    for (Index c = 0; c < x.cols(); ++c) square += (x(i, c) - mean) * (x(i, c) - mean) / width;
    deviation = std::sqrt(square + epsilon);
  }
};

/// y = (x - mean) / deviation * gain + bias
inline Matrix<double> norm(nn::Norm kind, double epsilon, const Matrix<double>& x,
                           const Matrix<double>& gain, const Matrix<double>& bias) {
  Matrix<double> y(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    const RowMoments row(kind, epsilon, x, i);
    for (Index c = 0; c < x.cols(); ++c) {
      y(i, c) = (x(i, c) - row.mean) / row.deviation * factor(gain, c) + summand(bias, c);
    }
  }
  return y;
}

// ---- MLP -----------------------------------------------------------------------------------------

template <class Real>
Real activation(Activation kind, Real x) {
  if (kind == Activation::relu) return x > 0 ? x : 0;
  if (kind == Activation::silu) return x / (1 + std::exp(-x));
  return x * std::erfc(-x / std::sqrt(Real(2))) / 2;
}

/// The tensors of an MLP.
struct MlpTensors {
  Matrix<double> up, gate, down;
  Matrix<double> up_bias, gate_bias, down_bias;
  Matrix<double> up_scale, gate_scale;  // of the normalized transformer
};

/// Calls visit(name, tensor) for each tensor.
template <class Visit>
void for_each_mlp_tensor(MlpTensors& m, const Visit& visit) {
  visit("mlp_up", m.up);
  visit("mlp_gate", m.gate);
  visit("mlp_down", m.down);
  visit("mlp_up_bias", m.up_bias);
  visit("mlp_gate_bias", m.gate_bias);
  visit("mlp_down_bias", m.down_bias);
  visit("up_scale", m.up_scale);
  visit("gate_scale", m.gate_scale);
}

/// y = down(h), h = f(u), or f(g) u with a gate; u = up_scale * up(x), g = √C gate_scale * gate(x)
struct Mlp {
  Activation kind = Activation::gelu;
  MlpTensors w;

  Matrix<double> up, gate, hidden;  // up(x), gate(x), h

  double u(Index i, Index j) const { return up(i, j) * factor(w.up_scale, j); }
  double gate_factor(Index j) const {
    const auto width = static_cast<double>(w.gate.rows());
    return present(w.gate_scale) ? std::sqrt(width) * w.gate_scale(0, j) : 1;
  }
  double g(Index i, Index j) const { return gate(i, j) * gate_factor(j); }

  Matrix<double> forward(const Matrix<double>& x) {
    up = linear(x, w.up, w.up_bias);
    if (present(w.gate)) gate = linear(x, w.gate, w.gate_bias);
    hidden = zeros_like(up);
    for (Index i = 0; i < up.rows(); ++i) {
      for (Index j = 0; j < up.cols(); ++j) {
        hidden(i, j) =
            present(w.gate) ? activation(kind, g(i, j)) * u(i, j) : activation(kind, u(i, j));
      }
    }
    return linear(hidden, w.down, w.down_bias);
  }
};

}  // namespace scalewise::test::reference
