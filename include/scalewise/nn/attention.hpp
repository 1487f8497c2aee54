// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/nn/matrix.hpp"
#include "scalewise/nn/parallel.hpp"

namespace scalewise::nn {

/// Sizes of an attention core. B batch, T query tokens, S key tokens, H heads, K key and value
/// heads, C features per head; head h reads key head h / (H / K).
struct AttentionSizes {
  Eigen::Index batch = 0;
  Eigen::Index query_tokens = 0;
  Eigen::Index key_tokens = 0;
  Eigen::Index heads = 0;
  Eigen::Index kv_heads = 0;
  Eigen::Index head_dim = 0;
  bool causal = false;

  Eigen::Index kv_head(Eigen::Index head) const { return head / (heads / kv_heads); }
};

/// Softmax attention of every head of every sequence.
/// Equation: P = softmax(scale q kᵀ), masked above the diagonal when causal; o = P v
/// Shapes:   q (B*T, H*C), k (B*S, K*C), v (B*S, K*C) -> p (B*H*T, S), o (B*T, H*C)
/// Requires: T <= S when causal.
template <class Scalar>
void attention_forward(const AttentionSizes& n, Scalar scale, const ConstView<Scalar>& q,
                       const ConstView<Scalar>& k, const ConstView<Scalar>& v, View<Scalar> p,
                       View<Scalar> o) {
  parallel_for(n.batch * n.heads, [&](Eigen::Index task) {
    const Eigen::Index b = task / n.heads;
    const Eigen::Index h = task % n.heads;
    const Eigen::Index g = n.kv_head(h);
    const auto q_h = block(q, b * n.query_tokens, h * n.head_dim, n.query_tokens, n.head_dim);
    const auto k_h = block(k, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    const auto v_h = block(v, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    auto p_h = block(p, task * n.query_tokens, 0, n.query_tokens, n.key_tokens);
    auto o_h = block(o, b * n.query_tokens, h * n.head_dim, n.query_tokens, n.head_dim);
    p_h.noalias() = scale * q_h * k_h.transpose();
    for (Eigen::Index t = 0; t < n.query_tokens; ++t) {
      const Eigen::Index seen = n.causal ? t + 1 : n.key_tokens;
      auto row = p_h.row(t);
      const Scalar largest = row.head(seen).maxCoeff();
      row.head(seen) = (row.head(seen).array() - largest).exp();
      row.head(seen) /= row.head(seen).sum();
      row.tail(n.key_tokens - seen).setZero();
    }
    o_h.noalias() = p_h * v_h;
  });
}

/// Gradient of attention_forward.
/// Equation: dv = Pᵀ do; dP = do vᵀ; dS = P * (dP - rowsum(dP * P)); dq = scale dS k;
///           dk = scale dSᵀ q
/// Shapes:   as attention_forward; ds (B*H*T, S) is scratch
/// Writes:   overwrites dq, dk, dv and ds.
template <class Scalar>
void attention_backward(const AttentionSizes& n, Scalar scale, const ConstView<Scalar>& dout,
                        const ConstView<Scalar>& q, const ConstView<Scalar>& k,
                        const ConstView<Scalar>& v, const ConstView<Scalar>& p, View<Scalar> ds,
                        View<Scalar> dq, View<Scalar> dk, View<Scalar> dv) {
  // One task per key head, so that the heads that share it add up in one place.
  parallel_for(n.batch * n.kv_heads, [&](Eigen::Index task) {
    const Eigen::Index b = task / n.kv_heads;
    const Eigen::Index g = task % n.kv_heads;
    const auto k_g = block(k, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    const auto v_g = block(v, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    auto dk_g = block(dk, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    auto dv_g = block(dv, b * n.key_tokens, g * n.head_dim, n.key_tokens, n.head_dim);
    dk_g.setZero();
    dv_g.setZero();
    const Eigen::Index group = n.heads / n.kv_heads;
    for (Eigen::Index h = g * group; h < (g + 1) * group; ++h) {
      const Eigen::Index rows = (b * n.heads + h) * n.query_tokens;
      const auto q_h = block(q, b * n.query_tokens, h * n.head_dim, n.query_tokens, n.head_dim);
      const auto do_h = block(dout, b * n.query_tokens, h * n.head_dim, n.query_tokens, n.head_dim);
      const auto p_h = block(p, rows, 0, n.query_tokens, n.key_tokens);
      auto ds_h = block(ds, rows, 0, n.query_tokens, n.key_tokens);
      auto dq_h = block(dq, b * n.query_tokens, h * n.head_dim, n.query_tokens, n.head_dim);
      dv_g.noalias() += p_h.transpose() * do_h;
      ds_h.noalias() = do_h * v_g.transpose();
      for (Eigen::Index t = 0; t < n.query_tokens; ++t) {
        const Scalar along = ds_h.row(t).dot(p_h.row(t));
        ds_h.row(t) = p_h.row(t).cwiseProduct((ds_h.row(t).array() - along).matrix());
      }
      dq_h.noalias() = scale * ds_h * k_g;
      dk_g.noalias() += scale * ds_h.transpose() * q_h;
    }
  });
}

/// Rotary position embedding, in place; `sign` -1 turns back, which is the gradient.
/// Equation: features (c, c + C/2) of a head at position t turn by t * 10000^(-2c/C)
/// Source:   Su et al. 2021 (arXiv:2104.09864v5), eq. (34), with the halves of a head as pairs.
/// Shapes:   x (B*T, heads*C)
/// Requires: an even number of features per head.
template <class Scalar>
void rotate(View<Scalar> x, Eigen::Index tokens, Eigen::Index head_dim, int sign) {
  const Eigen::Index half = head_dim / 2;
  parallel_tiles(x.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
    for (Eigen::Index i = begin; i < begin + rows; ++i) {
      const auto position = static_cast<double>(i % tokens);
      for (Eigen::Index c = 0; c < half; ++c) {
        const double frequency =
            std::pow(10000.0, -2.0 * static_cast<double>(c) / static_cast<double>(head_dim));
        const auto cosine = static_cast<Scalar>(std::cos(position * frequency));
        const auto sine = static_cast<Scalar>(sign * std::sin(position * frequency));
        for (Eigen::Index at = c; at < x.cols(); at += head_dim) {
          const Scalar a = x(i, at);
          const Scalar b = x(i, at + half);
          x(i, at) = a * cosine - b * sine;
          x(i, at + half) = a * sine + b * cosine;
        }
      }
    }
  });
}

}  // namespace scalewise::nn
