// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/propagation/attention.hpp"

namespace scalewise::propagation {

/// Attention from a decoder to what the encoder left: attention.length counts the encoder's tokens.
struct CrossAttention {
  Attention attention;
  double queries = 0;    // the decoder's tokens
  SignalMoments memory;  // what the encoder left
};

/// A cross-attention block.
/// Equation: attention_block with D and r s of the memory, W and r of the queries
/// Source:   derived, as attention_heads.
/// Accuracy: as attention_block.
inline SignalMoments cross_attention_block(const SignalMoments& x, const CrossAttention& c,
                                           Reading reading = Reading::corrected) {
  const Attention& a = c.attention;
  const SignalMoments heads = linear(detail::mix(x, c.memory, a, reading), a.width, a.value);
  return dropout(linear(heads, a.heads, a.output), a.dropout);
}

namespace detail {

/// The gradient taken back through the output and value matrices, per unit of what the heads read.
inline SignalMoments through_values(const SignalMoments& gradient, const Attention& a) {
  const SignalMoments out =
      linear_gradient(dropout_gradient(gradient, a.dropout), a.width, a.output);
  return linear_gradient(out, a.heads, a.value);
}

}  // namespace detail

/// The gradient that the block hands to the decoder's stream, through its queries.
/// Equation: d so h sv times sg/(1-p) (W D² + (e^S/L) S (D + p c)/(1-p))/s,
///           cg (W D² + (e^rS/L) S D)/s, c of the memory
/// Source:   derived; the paper takes probabilities for constant, which leaves nothing.
inline SignalMoments cross_attention_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                              const CrossAttention& c,
                                              Reading reading = Reading::corrected) {
  const SignalMoments g = detail::through_values(gradient, c.attention);
  SignalMoments y = detail::query_gradient(g, x, c.memory, c.attention, reading);
  if (reading != Reading::corrected) return y;
  const auto [D, U, W, S] = detail::Scores(c.attention, x, c.memory);
  const double sampled = std::exp(x.correlation() * S) / c.attention.length;
  y.covariance += g.covariance * sampled * c.attention.width * U * D * D;
  return y;
}

/// The gradient that the block hands to the memory, through its keys and values.
/// Equation: as attention_heads_gradient without W D²/s and S (1 - r + rp), which are the queries';
///           terms of one query times Lq/L, terms of two times (Lq/L)²
/// Source:   derived, as attention_heads_gradient.
inline SignalMoments memory_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                     const CrossAttention& c,
                                     Reading reading = Reading::corrected) {
  const SignalMoments g = detail::through_values(gradient, c.attention);
  return detail::mix_gradient(g, c.queries, x, c.memory, c.attention, reading);
}

}  // namespace scalewise::propagation
