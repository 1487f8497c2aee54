// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>

#include "scalewise/nn/activation.hpp"
#include "scalewise/nn/attention.hpp"
#include "scalewise/nn/config.hpp"
#include "scalewise/nn/norm.hpp"
#include "scalewise/nn/weight.hpp"

namespace scalewise::nn {

// Legend: B batch, T tokens, S tokens of the keys, N = B*T rows, C d_model, H heads, K key heads,
// D head_dim, F d_ff.

/// A norm with the gain and bias that the shape gives it.
template <class Scalar>
struct NormLayer {
  Norm kind = Norm::layer;
  Scalar epsilon = 0;
  Weight<Scalar> gain;
  Weight<Scalar> bias;
  NormCache<Scalar> cache;
  Matrix<Scalar> scaled_gain;  // (1, C), times the multiplier
  Matrix<Scalar> scaled_bias;
  Matrix<Scalar> dgain;
  Matrix<Scalar> dbias;

  /// Shapes: x (N, C) -> y (N, C)
  void forward(const ConstView<Scalar>& x, View<Scalar> y) {
    if (gain.present()) scaled_gain = gain.multiplier * gain.value();
    if (bias.present()) scaled_bias = bias.multiplier * bias.value();
    const ConstView<Scalar> g = read(scaled_gain);
    const ConstView<Scalar> b = read(scaled_bias);
    norm_forward(kind, x, gain.present() ? &g : nullptr, bias.present() ? &b : nullptr, epsilon,
                 cache, y);
  }

  /// Shapes: dy (N, C) -> dx (N, C). Writes: overwrites dx, accumulates gain and bias gradients.
  void backward(const ConstView<Scalar>& dy, View<Scalar> dx) {
    dgain.setZero(1, dy.cols());
    dbias.setZero(1, dy.cols());
    const ConstView<Scalar> g = read(scaled_gain);
    View<Scalar> dg = view(dgain);
    View<Scalar> db = view(dbias);
    norm_backward(kind, dy, gain.present() ? &g : nullptr, cache, dx,
                  gain.present() ? &dg : nullptr, bias.present() ? &db : nullptr);
    if (gain.present()) gain.gradient() += gain.multiplier * dgain;
    if (bias.present()) bias.gradient() += bias.multiplier * dbias;
  }
};

/// Attention with its four matrices: self-attention when keys come from the same rows as queries.
template <class Scalar>
struct AttentionLayer {
  AttentionSizes sizes;
  Scalar scale = 1;
  bool rotary = false;
  Weight<Scalar> query, key, value, output;
  Weight<Scalar> query_bias, key_bias, value_bias, output_bias;
  Weight<Scalar> qk_scale;  // normalized transformer: queries and keys of unit norm, times this

  Matrix<Scalar> q, k, v, p, o;                         // what the core reads and writes
  Matrix<Scalar> q_unit, k_unit, q_inverse, k_inverse;  // before qk_scale
  Matrix<Scalar> dq, dk, dv, ds, dout;

  /// Shapes: x (B*T, C), source (B*S, C) -> y (B*T, C)
  void forward(const ConstView<Scalar>& x, const ConstView<Scalar>& source, View<Scalar> y) {
    q.resize(x.rows(), sizes.heads * sizes.head_dim);
    k.resize(source.rows(), sizes.kv_heads * sizes.head_dim);
    v.resize(source.rows(), sizes.kv_heads * sizes.head_dim);
    p.resize(sizes.batch * sizes.heads * sizes.query_tokens, sizes.key_tokens);
    o.resize(x.rows(), q.cols());
    linear_forward(query, query_bias, x, view(q));
    linear_forward(key, key_bias, source, view(k));
    linear_forward(value, value_bias, source, view(v));
    if (rotary) {
      rotate(view(q), sizes.query_tokens, sizes.head_dim, 1);
      rotate(view(k), sizes.key_tokens, sizes.head_dim, 1);
    }
    if (qk_scale.present()) {
      unit_heads(q, q_unit, q_inverse);
      unit_heads(k, k_unit, k_inverse);
    }
    attention_forward(sizes, scale, read(q), read(k), read(v), view(p), view(o));
    linear_forward(output, output_bias, read(o), y);
  }

  /// Shapes: dy (B*T, C) -> dx (B*T, C), dsource (B*S, C)
  /// Writes: overwrites dx, adds to dsource (which may be dx), accumulates weight gradients.
  void backward(const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                const ConstView<Scalar>& source, View<Scalar> dx, View<Scalar> dsource) {
    dout.resize(o.rows(), o.cols());
    dq.resize(q.rows(), q.cols());
    dk.resize(k.rows(), k.cols());
    dv.resize(v.rows(), v.cols());
    ds.resize(p.rows(), p.cols());
    linear_backward(output, output_bias, read(o), dy, view(dout));
    attention_backward(sizes, scale, read(dout), read(q), read(k), read(v), read(p), view(ds),
                       view(dq), view(dk), view(dv));
    if (qk_scale.present()) {
      unit_heads_backward(dq, q_unit, q_inverse);
      unit_heads_backward(dk, k_unit, k_inverse);
    }
    if (rotary) {
      rotate(view(dq), sizes.query_tokens, sizes.head_dim, -1);
      rotate(view(dk), sizes.key_tokens, sizes.head_dim, -1);
    }
    linear_backward(query, query_bias, x, read(dq), dx);
    linear_backward(key, key_bias, source, read(dk), dsource, true);
    linear_backward(value, value_bias, source, read(dv), dsource, true);
  }

 private:
  /// x <- qk_scale * x / ‖x‖ per head. Shapes: x (N, H*D), unit (N, H*D), inverse (N, H)
  void unit_heads(Matrix<Scalar>& x, Matrix<Scalar>& unit, Matrix<Scalar>& inverse) {
    unit.resize(x.rows(), x.cols());
    inverse.resize(x.rows(), sizes.heads);
    for (Eigen::Index h = 0; h < sizes.heads; ++h) {
      const Eigen::Index at = h * sizes.head_dim;
      unit_forward(block(read(x), 0, at, x.rows(), sizes.head_dim),
                   block(view(unit), 0, at, x.rows(), sizes.head_dim),
                   block(view(inverse), 0, h, x.rows(), 1));
    }
    x = (unit.array().rowwise() * (qk_scale.multiplier * qk_scale.value().row(0)).array()).matrix();
  }

  /// Turns dx into the gradient before unit_heads, and accumulates that of qk_scale.
  void unit_heads_backward(Matrix<Scalar>& dx, const Matrix<Scalar>& unit,
                           const Matrix<Scalar>& inverse) {
    qk_scale.gradient() += qk_scale.multiplier * dx.cwiseProduct(unit).colwise().sum();
    dx = (dx.array().rowwise() * (qk_scale.multiplier * qk_scale.value().row(0)).array()).matrix();
    for (Eigen::Index h = 0; h < sizes.heads; ++h) {
      const Eigen::Index at = h * sizes.head_dim;
      unit_backward(block(read(dx), 0, at, dx.rows(), sizes.head_dim),
                    block(read(unit), 0, at, dx.rows(), sizes.head_dim),
                    block(read(inverse), 0, h, dx.rows(), 1),
                    block(view(dx), 0, at, dx.rows(), sizes.head_dim));
    }
  }
};

/// MLP: down(f(up x)), or down(f(gate x) * up x) when gated.
/// The normalized transformer scales u = up x by up_scale and g = gate x by √C gate_scale.
template <class Scalar>
struct MlpLayer {
  Activation activation = Activation::gelu;
  Weight<Scalar> up, gate, down;
  Weight<Scalar> up_bias, gate_bias, down_bias;
  Weight<Scalar> up_scale, gate_scale;

  Matrix<Scalar> u, g, u_raw, g_raw, hidden;
  Matrix<Scalar> du, dg, dhidden;

  /// Shapes: x (N, C) -> y (N, C); u, g, hidden (N, F)
  void forward(const ConstView<Scalar>& x, View<Scalar> y) {
    const Eigen::Index rows = x.rows();
    const Eigen::Index width = up.value().cols();
    u.resize(rows, width);
    hidden.resize(rows, width);
    linear_forward(up, up_bias, x, view(u));
    rescale(up_scale, 1, u, u_raw);
    if (gate.present()) {
      g.resize(rows, width);
      linear_forward(gate, gate_bias, x, view(g));
      rescale(gate_scale, std::sqrt(static_cast<Scalar>(x.cols())), g, g_raw);
    }
    parallel_tiles(rows, 32, [&](Eigen::Index begin, Eigen::Index count) {
      for (Eigen::Index i = begin * width; i < (begin + count) * width; ++i) {
        hidden.data()[i] = gate.present() ? activate(activation, g.data()[i]) * u.data()[i]
                                          : activate(activation, u.data()[i]);
      }
    });
    linear_forward(down, down_bias, read(hidden), y);
  }

  /// Shapes: dy (N, C) -> dx (N, C). Writes: overwrites dx, accumulates weight gradients.
  void backward(const ConstView<Scalar>& dy, const ConstView<Scalar>& x, View<Scalar> dx) {
    const Eigen::Index rows = x.rows();
    const Eigen::Index width = u.cols();
    dhidden.resize(rows, width);
    du.resize(rows, width);
    if (gate.present()) dg.resize(rows, width);
    linear_backward(down, down_bias, read(hidden), dy, view(dhidden));
    parallel_tiles(rows, 32, [&](Eigen::Index begin, Eigen::Index count) {
      for (Eigen::Index i = begin * width; i < (begin + count) * width; ++i) {
        const Scalar d = dhidden.data()[i];
        if (gate.present()) {
          du.data()[i] = d * activate(activation, g.data()[i]);
          dg.data()[i] = d * u.data()[i] * activation_slope(activation, g.data()[i]);
        } else {
          du.data()[i] = d * activation_slope(activation, u.data()[i]);
        }
      }
    });
    rescale_backward(up_scale, 1, u_raw, du);
    linear_backward(up, up_bias, x, read(du), dx);
    if (gate.present()) {
      rescale_backward(gate_scale, std::sqrt(static_cast<Scalar>(x.cols())), g_raw, dg);
      linear_backward(gate, gate_bias, x, read(dg), dx, true);
    }
  }

 private:
  static void rescale(const Weight<Scalar>& scale, Scalar factor, Matrix<Scalar>& x,
                      Matrix<Scalar>& raw) {
    if (!scale.present()) return;
    raw = x;
    x = (x.array().rowwise() * (factor * scale.multiplier * scale.value().row(0)).array()).matrix();
  }
  static void rescale_backward(const Weight<Scalar>& scale, Scalar factor,
                               const Matrix<Scalar>& raw, Matrix<Scalar>& dx) {
    if (!scale.present()) return;
    scale.gradient() += factor * scale.multiplier * dx.cwiseProduct(raw).colwise().sum();
    dx = (dx.array().rowwise() * (factor * scale.multiplier * scale.value().row(0)).array())
             .matrix();
  }
};

}  // namespace scalewise::nn
