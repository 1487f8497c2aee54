// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/dense/product.hpp"
#include "scalewise/nn/dropout.hpp"
#include "scalewise/numeric/parallel.hpp"

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

namespace detail {

/// The part of a matrix that belongs to one head of one sequence.
template <class V>
V head_block(const V& x, Eigen::Index batch, Eigen::Index head, Eigen::Index tokens,
             Eigen::Index head_dim) {
  return dense::block(x, batch * tokens, head * head_dim, tokens, head_dim);
}

/// Scores of one head to probabilities, in place; a causal query sees no key after its own position.
/// Shapes:   p (T, S)
template <class Scalar>
void softmax_rows(bool causal, View<Scalar> p) {
  for (Eigen::Index t = 0; t < p.rows(); ++t) {
    const Eigen::Index seen = causal ? t + 1 : p.cols();
    // Whole vectors: what is left over of a row would be computed number by number.
    constexpr Eigen::Index vector = 16;
    const Eigen::Index computed = (std::min)((seen + vector - 1) / vector * vector, p.cols());
    auto row = p.row(t).array();
    row.head(computed) = (row.head(computed) - row.head(seen).maxCoeff()).exp();
    row.head(computed) *= 1 / row.head(seen).sum();
    row.tail(p.cols() - seen).setZero();
  }
}

/// Gradient of softmax_rows, in place of that of the probabilities.
/// Equation: dS = P * (dP - rowsum(dP * P))
/// Shapes:   p (T, S) -> ds (T, S)
template <class Scalar>
void softmax_rows_backward(const ConstView<Scalar>& p, View<Scalar> ds) {
  for (Eigen::Index t = 0; t < p.rows(); ++t) {
    const Scalar along = ds.row(t).dot(p.row(t));
    ds.row(t).array() = p.row(t).array() * (ds.row(t).array() - along);
  }
}

/// How many tokens of a causal attention go together: products leave out what all of them are masked from.
/// Measured: by oneDNN, at width 64, 0.97 times as long a step as in tiles of 32 tokens, with 64 tokens and with 1024.
inline constexpr Eigen::Index causal_tile = 64;

/// Calls task(first query, queries, keys): queries that need no other than the first `keys` keys.
template <class Task>
void for_queries(const AttentionSizes& n, const Task& task) {
  const Eigen::Index tile = n.causal ? causal_tile : n.query_tokens;
  for (Eigen::Index t = 0; t < n.query_tokens; t += tile) {
    const Eigen::Index queries = (std::min)(tile, n.query_tokens - t);
    task(t, queries, n.causal ? t + queries : n.key_tokens);
  }
}

/// Calls task(first key, keys, first query): keys that no query before the first one needs.
template <class Task>
void for_keys(const AttentionSizes& n, const Task& task) {
  const Eigen::Index tile = n.causal ? causal_tile : n.key_tokens;
  for (Eigen::Index s = 0; s < n.key_tokens; s += tile) {
    task(s, (std::min)(tile, n.key_tokens - s), n.causal ? (std::min)(s, n.query_tokens) : 0);
  }
}

/// o = factor p v, of one head.
/// Shapes:   p (T, S), v (S, C) -> o (T, C)
template <class Scalar>
void mix(const AttentionSizes& n, Scalar factor, const ConstView<Scalar>& p,
         const ConstView<Scalar>& v, View<Scalar> o) {
  for_queries(n, [&](Eigen::Index t, Eigen::Index queries, Eigen::Index keys) {
    dense::product<Scalar>(dense::Into::fresh, factor, dense::block(p, t, 0, queries, keys),
                           dense::block(v, 0, 0, keys, v.cols()),
                           dense::block(o, t, 0, queries, o.cols()));
  });
}

/// v (+)= factor pᵀ o, of one head.
/// Shapes:   p (T, S), o (T, C) -> v (S, C)
template <class Scalar>
void mix_back(const AttentionSizes& n, dense::Into into, Scalar factor, const ConstView<Scalar>& p,
              const ConstView<Scalar>& o, View<Scalar> v) {
  for_keys(n, [&](Eigen::Index s, Eigen::Index keys, Eigen::Index first) {
    const Eigen::Index queries = n.query_tokens - first;
    View<Scalar> part = dense::block(v, s, 0, keys, v.cols());
    if (queries == 0) {  // for no head of the group
      part.setZero();
      return;
    }
    dense::product<Scalar>(into, factor,
                           dense::transposed(dense::block(p, first, s, queries, keys)),
                           dense::block(o, first, 0, queries, o.cols()), part);
  });
}

}  // namespace detail

/// Scores of every query against every key, masked ones included.
/// Equation: S = scale q kᵀ
/// Shapes:   q (B*T, H*C), k (B*S, K*C) -> s (B*H*T, S)
template <class Scalar>
void attention_scores(const AttentionSizes& n, Scalar scale, const ConstView<Scalar>& q,
                      const ConstView<Scalar>& k, View<Scalar> s) {
  numeric::parallel_parts(n.batch * n.heads, [&](Eigen::Index task) {
    const Eigen::Index b = task / n.heads;
    const Eigen::Index h = task % n.heads;
    auto s_h = dense::block(s, task * n.query_tokens, 0, n.query_tokens, n.key_tokens);
    dense::product<Scalar>(
        dense::Into::fresh, scale, detail::head_block(q, b, h, n.query_tokens, n.head_dim),
        dense::transposed(detail::head_block(k, b, n.kv_head(h), n.key_tokens, n.head_dim)), s_h);
  });
}

/// Caps scores, in place: they stay between -cap and cap.
/// Equation: s <- c tanh(s/c); slope = 1 - tanh²(s/c)
/// Source:   Gemma Team 2024 (arXiv:2408.00118), section 2, logit soft-capping.
/// Shapes:   s, slope (N, S)
template <class Scalar>
void soft_cap(Scalar cap, View<Scalar> s, View<Scalar> slope) {
  numeric::parallel_rows(s.rows(), [&](Eigen::Index i) {
    auto turned = slope.row(i).array();
    turned = (s.row(i).array() / cap).tanh();
    s.row(i).array() = cap * turned;
    turned = 1 - turned.square();
  });
}

/// Turns scores into probabilities, in place, and mixes the values.
/// Equation: P = softmax(S), masked above the diagonal when causal; o = dropout(P) v
/// Shapes:   p (B*H*T, S): scores, then probabilities before dropout; v (B*S, K*C) -> o (B*T, H*C);
///           kept (B*H*T, S) is scratch, used where dropout is on
/// Requires: T <= S when causal.
template <class Scalar>
void attention_mix(const AttentionSizes& n, const Dropout& dropout, const ConstView<Scalar>& v,
                   View<Scalar> p, View<Scalar> kept, View<Scalar> o) {
  numeric::parallel_parts(n.batch * n.heads, [&](Eigen::Index task) {
    const Eigen::Index b = task / n.heads;
    const Eigen::Index h = task % n.heads;
    const Eigen::Index first = task * n.query_tokens;
    auto p_h = dense::block(p, first, 0, n.query_tokens, n.key_tokens);
    detail::softmax_rows(n.causal, p_h);
    const auto v_h = detail::head_block(v, b, n.kv_head(h), n.key_tokens, n.head_dim);
    auto o_h = detail::head_block(o, b, h, n.query_tokens, n.head_dim);
    if (dropout.active()) {
      auto kept_h = dense::block(kept, first, 0, n.query_tokens, n.key_tokens);
      kept_h = p_h;
      dropout.apply(first * n.key_tokens, kept_h.size(), kept_h.data());
      detail::mix<Scalar>(n, 1, dense::read(kept_h), v_h, o_h);
    } else {
      detail::mix<Scalar>(n, 1, dense::read(p_h), v_h, o_h);
    }
  });
}

/// The arguments of attention_backward: the gradient of o, and inputs and results of the forward pass.
/// Shapes:   as in attention_scores and attention_mix; cap_slope as p, or null without a cap
template <class Scalar>
struct AttentionPass {
  ConstView<Scalar> o_gradient, q, k, v, p;
  const ConstView<Scalar>* cap_slope = nullptr;
};

/// The results of attention_backward: the gradients of queries, keys, values and scores.
/// Shapes:   as in attention_scores and attention_mix
template <class Scalar>
struct AttentionGradients {
  View<Scalar> q, k, v, s;
};

/// Gradient of attention_scores and attention_mix together.
/// Equation: dv = dropout(P)ᵀ do; dP = dropout(do vᵀ); dS = cap_slope * P * (dP - rowsum(dP * P));
///           dq = scale dS k; dk = scale dSᵀ q
/// Shapes:   as there; kept is scratch again
/// Writes:   overwrites all of d.
template <class Scalar>
void attention_backward(const AttentionSizes& n, Scalar scale, const Dropout& dropout,
                        const AttentionPass<Scalar>& pass, View<Scalar> kept,
                        const AttentionGradients<Scalar>& d) {
  // One task per key head, so that the heads that share it add up in one place.
  numeric::parallel_parts(n.batch * n.kv_heads, [&](Eigen::Index task) {
    const Eigen::Index b = task / n.kv_heads;
    const Eigen::Index g = task % n.kv_heads;
    const auto k_g = detail::head_block(pass.k, b, g, n.key_tokens, n.head_dim);
    const auto v_g = detail::head_block(pass.v, b, g, n.key_tokens, n.head_dim);
    auto dk_g = detail::head_block(d.k, b, g, n.key_tokens, n.head_dim);
    auto dv_g = detail::head_block(d.v, b, g, n.key_tokens, n.head_dim);
    const Eigen::Index group = n.heads / n.kv_heads;
    for (Eigen::Index h = g * group; h < (g + 1) * group; ++h) {
      const dense::Into into = h == g * group ? dense::Into::fresh : dense::Into::sum;
      const Eigen::Index first = (b * n.heads + h) * n.query_tokens;
      const auto q_h = detail::head_block(pass.q, b, h, n.query_tokens, n.head_dim);
      const auto do_h = detail::head_block(pass.o_gradient, b, h, n.query_tokens, n.head_dim);
      const auto p_h = dense::block(pass.p, first, 0, n.query_tokens, n.key_tokens);
      auto ds_h = dense::block(d.s, first, 0, n.query_tokens, n.key_tokens);
      detail::for_queries(n, [&](Eigen::Index t, Eigen::Index queries, Eigen::Index keys) {
        dense::product<Scalar>(dense::Into::fresh, 1, dense::block(do_h, t, 0, queries, n.head_dim),
                               dense::transposed(dense::block(v_g, 0, 0, keys, n.head_dim)),
                               dense::block(ds_h, t, 0, queries, keys));
      });
      if (dropout.active()) {
        auto kept_h = dense::block(kept, first, 0, n.query_tokens, n.key_tokens);
        kept_h = p_h;
        dropout.apply(first * n.key_tokens, kept_h.size(), kept_h.data());
        dropout.apply(first * n.key_tokens, ds_h.size(), ds_h.data());
        detail::mix_back<Scalar>(n, into, 1, dense::read(kept_h), do_h, dv_g);
      } else {
        detail::mix_back<Scalar>(n, into, 1, p_h, do_h, dv_g);
      }
      detail::for_queries(n, [&](Eigen::Index t, Eigen::Index queries, Eigen::Index keys) {
        detail::softmax_rows_backward(dense::block(p_h, t, 0, queries, keys),
                                      dense::block(ds_h, t, 0, queries, keys));
        if (pass.cap_slope != nullptr) {
          dense::block(ds_h, t, 0, queries, keys).array() *=
              dense::block(*pass.cap_slope, first + t, 0, queries, keys).array();
        }
        dense::block(ds_h, t, keys, queries, n.key_tokens - keys).setZero();
      });
      detail::mix<Scalar>(n, scale, dense::read(ds_h), k_g,
                          detail::head_block(d.q, b, h, n.query_tokens, n.head_dim));
      detail::mix_back<Scalar>(n, into, scale, dense::read(ds_h), q_h, dk_g);
    }
  });
}

}  // namespace scalewise::nn
