// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/nn/activation.hpp"
#include "scalewise/nn/attention.hpp"
#include "scalewise/nn/config.hpp"
#include "scalewise/nn/norm.hpp"
#include "scalewise/nn/pass.hpp"
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
  dense::Buffer<Scalar> scaled_gain;  // (1, C), times the multiplier
  dense::Buffer<Scalar> scaled_bias;
  dense::Buffer<Scalar> dgain;
  dense::Buffer<Scalar> dbias;

  /// Shapes: x (N, C) -> y (N, C)
  void forward(const ConstView<Scalar>& x, View<Scalar> y) {
    if (gain.present()) scaled_gain.shape(1, x.cols()) = gain.multiplier * gain.value();
    if (bias.present()) scaled_bias.shape(1, x.cols()) = bias.multiplier * bias.value();
    const ConstView<Scalar> g = scaled_gain.read();
    const ConstView<Scalar> b = scaled_bias.read();
    norm_forward(kind, x, weights(g, b), epsilon, cache, y);
  }

  /// Computes y of the last forward again.
  /// Shapes:   x (N, C) -> y (N, C)
  void again(const ConstView<Scalar>& x, View<Scalar> y) const {
    const ConstView<Scalar> g = scaled_gain.read();
    const ConstView<Scalar> b = scaled_bias.read();
    norm_again(x, weights(g, b), cache, y);
  }

  /// dx = the gradient, and beside_factor * beside where that is given.
  /// Shapes: dy, x, beside (N, C) -> dx (N, C).
  /// Writes: overwrites dx and the gradients of gain and bias.
  void backward(const ConstView<Scalar>& dy, const ConstView<Scalar>& x, View<Scalar> dx,
                const ConstView<Scalar>* beside = nullptr, Scalar beside_factor = 1) {
    const ConstView<Scalar> g = scaled_gain.read();
    View<Scalar> dg = dgain.shape(1, dy.cols());
    View<Scalar> db = dbias.shape(1, dy.cols());
    dg.setZero();
    db.setZero();
    norm_backward(kind, dy, x, gain.present() ? &g : nullptr, cache,
                  {.x = dx,
                   .gain = gain.present() ? &dg : nullptr,
                   .bias = bias.present() ? &db : nullptr,
                   .beside = beside,
                   .beside_factor = beside_factor});
    if (gain.present()) gain.gradient() = gain.multiplier * dg;
    if (bias.present()) bias.gradient() = bias.multiplier * db;
  }

 private:
  NormWeights<Scalar> weights(const ConstView<Scalar>& g, const ConstView<Scalar>& b) const {
    return {.gain = gain.present() ? &g : nullptr, .bias = bias.present() ? &b : nullptr};
  }
};

/// Attention with its four matrices: self-attention when keys come from the same rows as queries.
template <class Scalar>
struct AttentionLayer {
  std::string name;  // what observers and dropout know it by, ending in a dot
  AttentionSizes sizes;
  Scalar scale = 1;
  bool rotary = false;
  Weight<Scalar> query, key, value, output;
  Weight<Scalar> query_bias, key_bias, value_bias, output_bias;
  Weight<Scalar> qk_scale;  // normalized transformer: queries and keys of unit norm, times this
  QkNorm qk_norm = QkNorm::none;
  NormLayer<Scalar> query_norm, key_norm;
  Scalar score_cap = 0;  // 0: none

  dense::Buffer<Scalar> q, k, v, p, o;                         // what the core reads and writes
  dense::Buffer<Scalar> q_unit, k_unit, q_inverse, k_inverse;  // before qk_scale
  dense::Buffer<Scalar> q_raw, k_raw;                          // before their norms
  dense::Buffer<Scalar> cap_slope;                             // (B*H*T, S)

  /// Shapes: x (B*T, C), source (B*S, C) -> y (B*T, C)
  void forward(Pass<Scalar>& pass, const ConstView<Scalar>& x, const ConstView<Scalar>& source,
               View<Scalar> y) {
    View<Scalar> queries = q.shape(x.rows(), sizes.heads * sizes.head_dim);
    View<Scalar> keys = k.shape(source.rows(), sizes.kv_heads * sizes.head_dim);
    View<Scalar> values = v.shape(source.rows(), sizes.kv_heads * sizes.head_dim);
    side_by_side(linear_tiles(query, query_bias, x, queries),
                 linear_tiles(key, key_bias, source, keys),
                 linear_tiles(value, value_bias, source, values));
    if (qk_norm != QkNorm::none) {
      normalize(query_norm, q_raw, queries);
      normalize(key_norm, k_raw, keys);
    }
    if (rotary) {
      pass.rotary.prepare((std::max)(sizes.query_tokens, sizes.key_tokens), sizes.head_dim);
      pass.rotary.rotate(queries, sizes.query_tokens, 1);
      pass.rotary.rotate(keys, sizes.key_tokens, 1);
    }
    if (qk_scale.present()) {
      unit_heads(queries, q_unit, q_inverse);
      unit_heads(keys, k_unit, k_inverse);
    }
    View<Scalar> scores = p.shape(sizes.batch * sizes.heads * sizes.query_tokens, sizes.key_tokens);
    attention_scores(sizes, scale, q.read(), k.read(), scores);
    pass.show(name, "scores", p.read());
    if (score_cap > 0) soft_cap(score_cap, scores, cap_slope.shape(scores.rows(), scores.cols()));
    const Dropout dropout = pass.dropout_of(name, "probabilities");
    if (dropout.active()) pass.kept.shape(scores.rows(), scores.cols());
    attention_mix(sizes, dropout, v.read(), scores, pass.kept.view(),
                  o.shape(x.rows(), queries.cols()));
    pass.show(name, "probabilities", p.read());
    pass.show(name, "heads", o.read());
    linear_forward(output, output_bias, o.read(), y);
  }

  /// Shapes: dy (B*T, C) -> dx (B*T, C), dsource (B*S, C)
  /// Writes: overwrites dx and the weights' gradients, adds to dsource, which may be dx.
  void backward(Pass<Scalar>& pass, const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                const ConstView<Scalar>& source, View<Scalar> dx, View<Scalar> dsource) {
    const auto [dq, dk, dv, ds] = gradients(pass);
    dense::Buffer<Scalar>& mixed = pass.output;  // free in the backward pass: the gradient of o
    linear_backward(output, output_bias, o.read(), dy, mixed.shape(o.rows(), o.cols()));
    pass.show_gradient(name, "heads", mixed.read());
    const Dropout dropout = pass.dropout_of(name, "probabilities");
    if (dropout.active()) pass.kept.shape(p.rows(), p.cols());
    const ConstView<Scalar> slope = cap_slope.read();
    attention_backward(sizes, scale, dropout,
                       {.o_gradient = mixed.read(),
                        .q = q.read(),
                        .k = k.read(),
                        .v = v.read(),
                        .p = p.read(),
                        .cap_slope = score_cap > 0 ? &slope : nullptr},
                       pass.kept.view(), {.q = dq, .k = dk, .v = dv, .s = ds});
    pass.show_gradient(name, "scores", dense::read(ds));
    if (qk_scale.present()) {
      qk_scale.gradient().setZero();
      unit_heads_backward(dq, q_unit, q_inverse);
      unit_heads_backward(dk, k_unit, k_inverse);
    }
    if (rotary) {
      pass.rotary.rotate(dq, sizes.query_tokens, -1);
      pass.rotary.rotate(dk, sizes.key_tokens, -1);
    }
    if (qk_norm != QkNorm::none) {
      normalize_backward(query_norm, q_raw, dq);
      normalize_backward(key_norm, k_raw, dk);
    }
    const Path<Scalar> of_query{query, dense::read(dq)}, of_key{key, dense::read(dk)},
        of_value{value, dense::read(dv)};
    const auto backward = [&](const auto&... inputs) {
      side_by_side(weight_gradient_tiles(query, x, of_query.dy),
                   weight_gradient_tiles(key, source, of_key.dy),
                   weight_gradient_tiles(value, source, of_value.dy),
                   bias_gradient_tiles(query_bias, of_query.dy),
                   bias_gradient_tiles(key_bias, of_key.dy),
                   bias_gradient_tiles(value_bias, of_value.dy), inputs...);
    };
    if (dsource.data() == dx.data()) {
      backward(input_gradient_tiles(std::array{of_query, of_key, of_value}, dx));
    } else {
      backward(input_gradient_tiles(std::array{of_query}, dx),
               input_gradient_tiles(std::array{of_key, of_value}, dsource, dense::Into::sum));
    }
  }

 private:
  /// One after the other, in the memory that an MLP's hidden layer needs at other times.
  AttentionGradients<Scalar> gradients(Pass<Scalar>& pass) const {
    const std::array<const dense::Buffer<Scalar>*, 4> of{&q, &k, &v, &p};
    const auto padded = [](const dense::Buffer<Scalar>& b) {
      return (b.rows() * b.cols() + 15) / 16 * 16;
    };
    Eigen::Index size = 0;
    for (const auto* b : of) size += padded(*b);
    Scalar* next = pass.hidden.shape(1, size).data();
    const auto take = [&](const dense::Buffer<Scalar>& b) {
      const View<Scalar> view(next, b.rows(), b.cols(), Eigen::OuterStride<>(b.cols()));
      next += padded(b);
      return view;
    };
    return {take(q), take(k), take(v), take(p)};  // in this order
  }

  /// The rows that a norm of queries or keys works on: one per head, or one for all heads.
  template <class AnyView>
  AnyView normed_rows(AnyView x) const {
    const Eigen::Index size = qk_norm == QkNorm::head ? sizes.head_dim : x.cols();
    return {x.data(), x.size() / size, size, Eigen::OuterStride<>(size)};
  }

  /// x <- norm x, and what it was in raw.
  void normalize(NormLayer<Scalar>& norm, dense::Buffer<Scalar>& raw, View<Scalar> x) {
    raw.shape(x.rows(), x.cols()) = x;
    norm.forward(normed_rows(raw.read()), normed_rows(x));
  }

  /// Turns dx into the gradient before the norm.
  void normalize_backward(NormLayer<Scalar>& norm, const dense::Buffer<Scalar>& raw,
                          View<Scalar> dx) {
    norm.backward(normed_rows(dense::read(dx)), normed_rows(raw.read()), normed_rows(dx));
  }

  /// x <- qk_scale * x / ‖x‖ per head.
  /// Shapes: x (N, H*D), unit (N, H*D), inverse (N, H)
  void unit_heads(View<Scalar> x, dense::Buffer<Scalar>& unit, dense::Buffer<Scalar>& inverse) {
    View<Scalar> units = unit.shape(x.rows(), x.cols());
    View<Scalar> inverses = inverse.shape(x.rows(), sizes.heads);
    const ConstView<Scalar> in = dense::read(x);
    for (Eigen::Index h = 0; h < sizes.heads; ++h) {
      const Eigen::Index at = h * sizes.head_dim;
      unit_forward(dense::block(in, 0, at, x.rows(), sizes.head_dim),
                   dense::block(units, 0, at, x.rows(), sizes.head_dim),
                   dense::block(inverses, 0, h, x.rows(), 1));
    }
    scale_columns(qk_scale.multiplier, unit.read(), qk_scale.value(), x);
  }

  /// Turns dx into the gradient before unit_heads, and adds to that of qk_scale.
  void unit_heads_backward(View<Scalar> dx, const dense::Buffer<Scalar>& unit,
                           const dense::Buffer<Scalar>& inverse) {
    const ConstView<Scalar> d = dense::read(dx);
    sum_products(qk_scale.multiplier, d, unit.read(), qk_scale.gradient());
    scale_columns(qk_scale.multiplier, d, qk_scale.value(), dx);
    for (Eigen::Index h = 0; h < sizes.heads; ++h) {
      const Eigen::Index at = h * sizes.head_dim;
      unit_backward(dense::block(d, 0, at, dx.rows(), sizes.head_dim),
                    dense::block(unit.read(), 0, at, dx.rows(), sizes.head_dim),
                    dense::block(inverse.read(), 0, h, dx.rows(), 1),
                    dense::block(dx, 0, at, dx.rows(), sizes.head_dim));
    }
  }
};

/// MLP: down(f(up x)), or down(f(gate x) * up x) when gated.
/// The normalized transformer scales u = up x by up_scale and g = gate x by √C gate_scale.
/// The input of down is not kept: the backward pass computes it again from u and g, which costs less
/// than the memory.
template <class Scalar>
struct MlpLayer {
  std::string name;  // what observers know it by, ending in a dot; empty: they do not see it
  Activation activation = Activation::gelu;
  Weight<Scalar> up, gate, down;
  Weight<Scalar> up_bias, gate_bias, down_bias;
  Weight<Scalar> up_scale, gate_scale;

  dense::Buffer<Scalar> u, g;          // (N, F), up x and gate x
  dense::Buffer<Scalar> u_raw, g_raw;  // before the scales

  /// Shapes: x (N, C) -> y (N, C); hidden (N, F)
  void forward(Pass<Scalar>& pass, const ConstView<Scalar>& x, View<Scalar> y) {
    const Eigen::Index width = up.value().cols();
    View<Scalar> hidden = pass.hidden.shape(x.rows(), width);
    View<Scalar> linear = u.shape(x.rows(), width);
    if (!gate.present()) {
      rescaled_linear(up, up_bias, {up_scale, 1, u_raw}, x, linear,
                      [&](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
                        for (Eigen::Index i = 0; i < tile.rows(); ++i) {
                          activate(activation, tile.cols(), &tile(i, 0), &hidden(row + i, column));
                        }
                      });
    } else {
      rescaled_linear(up, up_bias, {up_scale, 1, u_raw}, x, linear, nothing);
      rescaled_linear(
          gate, gate_bias, {gate_scale, gate_factor(x), g_raw}, x, g.shape(x.rows(), width),
          [&](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
            for (Eigen::Index i = 0; i < tile.rows(); ++i) {
              activate(activation, tile.cols(), &tile(i, 0), &hidden(row + i, column));
            }
            auto h = dense::block(hidden, row, column, tile.rows(), tile.cols());
            h.array() *= dense::block(linear, row, column, tile.rows(), tile.cols()).array();
          });
    }
    if (!name.empty()) pass.show(name, "hidden", pass.hidden.read());
    linear_forward(down, down_bias, pass.hidden.read(), y);
  }

  /// Calls known() once the gradient of down is known, and down is no longer read.
  /// Shapes: dy (N, C) -> dx (N, C)
  /// Writes: overwrites dx, the weights' gradients, and u and g.
  template <class Known>
  void backward(Pass<Scalar>& pass, const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                View<Scalar> dx, const Known& known) {
    View<Scalar> hidden = pass.hidden.shape(u.rows(), u.cols());
    View<Scalar> active = gate.present() ? pass.active.shape(u.rows(), u.cols()) : hidden;
    View<Scalar> slope = gate.present() ? g.view() : u.view();  // takes the place of its argument
    const ConstView<Scalar> linear = u.read();
    numeric::parallel_tiles(u.rows(), 32, [&](Eigen::Index begin, Eigen::Index rows) {
      const Eigen::Index at = begin * u.cols();
      Scalar* s = slope.data() + at;
      activate(activation, rows * u.cols(), s, active.data() + at, s);
      if (!gate.present()) return;
      hidden.middleRows(begin, rows) =
          active.middleRows(begin, rows).cwiseProduct(linear.middleRows(begin, rows));
    });
    // The gradient of hidden takes its place once that of down is known.
    side_by_side(weight_gradient_tiles(down, pass.hidden.read(), dy),
                 bias_gradient_tiles(down_bias, dy));
    multiply(down.multiplier, dy, dense::transposed(down.value()), hidden);
    known();
    if (!name.empty()) pass.show_gradient(name, "hidden", pass.hidden.read());
    View<Scalar> up_gradient = gate.present() ? active : hidden;
    numeric::parallel_tiles(u.rows(), 32, [&](Eigen::Index begin, Eigen::Index rows) {
      auto h = hidden.middleRows(begin, rows).array();
      if (gate.present()) {
        active.middleRows(begin, rows).array() *= h;
        h *= linear.middleRows(begin, rows).array();
      }
      h *= slope.middleRows(begin, rows).array();
    });
    rescaled_backward(up_scale, 1, u_raw, up_gradient);
    const Path<Scalar> of_up{up, dense::read(up_gradient)}, of_gate{gate, pass.hidden.read()};
    if (!gate.present()) return linear_backward(up, up_bias, x, of_up.dy, dx);
    rescaled_backward(gate_scale, gate_factor(x), g_raw, hidden);
    side_by_side(weight_gradient_tiles(up, x, of_up.dy), weight_gradient_tiles(gate, x, of_gate.dy),
                 bias_gradient_tiles(up_bias, of_up.dy), bias_gradient_tiles(gate_bias, of_gate.dy),
                 input_gradient_tiles(std::array{of_up, of_gate}, dx));
  }

 private:
  static void nothing(Eigen::Index, Eigen::Index, const View<Scalar>&) {}

  static Scalar gate_factor(const ConstView<Scalar>& x) {
    return std::sqrt(static_cast<Scalar>(x.cols()));
  }

  /// factor scale, which need not be there, and what is kept of y before it.
  struct Rescale {
    const Weight<Scalar>& scale;
    Scalar factor;
    dense::Buffer<Scalar>& raw;
  };

  /// y = factor scale * (x W + b), or x W + b without a scale.
  template <class Finish>
  static void rescaled_linear(const Weight<Scalar>& w, const Weight<Scalar>& b, const Rescale& r,
                              const ConstView<Scalar>& x, View<Scalar> y, const Finish& finish) {
    const Weight<Scalar>& scale = r.scale;
    if (!scale.present()) return side_by_side(linear_tiles(w, b, x, y, finish));
    View<Scalar> before = r.raw.shape(y.rows(), y.cols());
    const auto rescale = [&](Eigen::Index row, Eigen::Index column, View<Scalar> tile) {
      dense::block(before, row, column, tile.rows(), tile.cols()) = tile;
      for (Eigen::Index i = 0; i < tile.rows(); ++i) {
        tile.row(i).array() *=
            r.factor * scale.multiplier * scale.value().row(0).segment(column, tile.cols()).array();
      }
      finish(row, column, tile);
    };
    side_by_side(linear_tiles(w, b, x, y, rescale));
  }

  /// Turns dy into the gradient before the scale, and overwrites that of the scale.
  static void rescaled_backward(const Weight<Scalar>& scale, Scalar factor,
                                const dense::Buffer<Scalar>& raw, View<Scalar> dy) {
    if (!scale.present()) return;
    const ConstView<Scalar> d = dense::read(dy);
    scale.gradient().setZero();
    sum_products(factor * scale.multiplier, d, raw.read(), scale.gradient());
    scale_columns(factor * scale.multiplier, d, scale.value(), dy);
  }
};

}  // namespace scalewise::nn
