// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Attention from its equations, forward and backward, as reference_layers.hpp has norm and MLP, with its
// letters.
#pragma once

#include <cmath>
#include <complex>
#include <functional>

#include "scalewise/dense/matrix.hpp"
#include "scalewise/nn/attention.hpp"
#include "support/reference_layers.hpp"

namespace scalewise::test::reference {

/// Turns features (c, c + D/2) of every head, as a complex number, by sign * t * 10000^(-2c/D). Turning
/// back is the gradient.
inline Matrix<double> rotate(Matrix<double> x, Index tokens, Index head_dim, int sign) {
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index head = 0; head < x.cols(); head += head_dim) {
      for (Index c = 0; c < head_dim / 2; ++c) {
        double& real = x(i, head + c);
        double& imaginary = x(i, head + c + head_dim / 2);
        const double exponent = -2 * static_cast<double>(c) / static_cast<double>(head_dim);
        const double angle = sign * static_cast<double>(i % tokens) * std::pow(10000.0, exponent);
        const auto turned = std::complex<double>(real, imaginary) * std::polar(1.0, angle);
        real = turned.real();
        imaginary = turned.imag();
      }
    }
  }
  return x;
}

/// Length of the head that feature c of row i belongs to.
inline double head_length(const Matrix<double>& x, Index i, Index c, Index head_dim) {
  double square = 0;
  const Index first = c / head_dim * head_dim;
  for (Index e = first; e < first + head_dim; ++e) square += x(i, e) * x(i, e);
  return std::sqrt(square);
}

/// y = scale * x / |x|, each head over its own length.
inline Matrix<double> unit_heads(const Matrix<double>& x, const Matrix<double>& scale,
                                 Index head_dim) {
  Matrix<double> y(x.rows(), x.cols());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index c = 0; c < x.cols(); ++c) {
      y(i, c) = scale(0, c) * x(i, c) / head_length(x, i, c, head_dim);
    }
  }
  return y;
}

/// c tanh(x/c), or x without a cap.
inline double capped(double cap, double x) { return cap > 0 ? cap * std::tanh(x / cap) : x; }

/// The core of attention: scores (B*H*T, S), masked ones included, their softmax, and the mean of the
/// values that it weighs, heads (B*T, H*D). Dropout multiplies the probabilities by its mask.
struct AttentionCore {
  Matrix<double> scores, probabilities, heads;
};

inline AttentionCore attention_core(const nn::AttentionSizes& n, double scale,
                                    const Matrix<double>& q, const Matrix<double>& k,
                                    const Matrix<double>& v, const Matrix<double>& mask = {},
                                    double cap = 0) {
  AttentionCore a;
  a.scores.setZero(n.batch * n.heads * n.query_tokens, n.key_tokens);
  a.probabilities = a.scores;
  a.heads = zeros_like(q);
  for (Index row = 0; row < a.scores.rows(); ++row) {
    const Index t = row % n.query_tokens;
    const Index h = row / n.query_tokens % n.heads;
    const Index b = row / n.query_tokens / n.heads;
    const Index query = b * n.query_tokens + t;
    const Index key = b * n.key_tokens;                        // the first of this sequence
    const Index of_q = h * n.head_dim;                         // the first feature of the head
    const Index of_k = h * n.kv_heads / n.heads * n.head_dim;  // and of the key head that it reads
    const Index seen = n.causal ? t + 1 : n.key_tokens;
    double total = 0;
    for (Index s = 0; s < n.key_tokens; ++s) {
      double product = 0;
      for (Index c = 0; c < n.head_dim; ++c) product += q(query, of_q + c) * k(key + s, of_k + c);
      a.scores(row, s) = scale * product;
      if (s < seen) total += std::exp(capped(cap, scale * product));
    }
    for (Index s = 0; s < seen; ++s) {
      a.probabilities(row, s) = std::exp(capped(cap, a.scores(row, s))) / total;
      const double kept = a.probabilities(row, s) * (present(mask) ? mask(row, s) : 1);
      for (Index c = 0; c < n.head_dim; ++c)
        a.heads(query, of_q + c) += kept * v(key + s, of_k + c);
    }
  }
  return a;
}

struct AttentionCoreGradient {
  Matrix<double> scores, q, k, v;
};

/// With p = softmax(s): dp_r/ds_s = p_r ((r = s) - p_s)
inline AttentionCoreGradient attention_core_backward(
    const nn::AttentionSizes& n, double scale, const Matrix<double>& dheads,
    const Matrix<double>& q, const Matrix<double>& k, const Matrix<double>& v,
    const Matrix<double>& p, const Matrix<double>& mask = {}) {
  AttentionCoreGradient d{zeros_like(p), zeros_like(q), zeros_like(k), zeros_like(v)};
  for (Index row = 0; row < p.rows(); ++row) {
    const Index h = row / n.query_tokens % n.heads;
    const Index b = row / n.query_tokens / n.heads;
    const Index query = b * n.query_tokens + row % n.query_tokens;
    const Index key = b * n.key_tokens;
    const Index of_q = h * n.head_dim;
    const Index of_k = h * n.kv_heads / n.heads * n.head_dim;
    for (Index r = 0; r < n.key_tokens; ++r) {
      const double keep = present(mask) ? mask(row, r) : 1;
      double dp = 0;
      for (Index c = 0; c < n.head_dim; ++c) {
        dp += keep * dheads(query, of_q + c) * v(key + r, of_k + c);
        d.v(key + r, of_k + c) += keep * p(row, r) * dheads(query, of_q + c);
      }
      for (Index s = 0; s < n.key_tokens; ++s) {
        d.scores(row, s) += dp * p(row, r) * ((r == s ? 1 : 0) - p(row, s));
      }
    }
    for (Index s = 0; s < n.key_tokens; ++s) {
      for (Index c = 0; c < n.head_dim; ++c) {
        d.q(query, of_q + c) += scale * d.scores(row, s) * k(key + s, of_k + c);
        d.k(key + s, of_k + c) += scale * d.scores(row, s) * q(query, of_q + c);
      }
    }
  }
  return d;
}

/// The tensors of attention.
struct AttentionTensors {
  Matrix<double> query, key, value, output;
  Matrix<double> query_bias, key_bias, value_bias, output_bias;
  Matrix<double> qk_scale;  // normalized transformer: queries and keys of unit norm, times this
};

/// Calls visit(name, tensor) for each tensor.
template <class Visit>
void for_each_attention_tensor(AttentionTensors& a, const Visit& visit) {
  visit("query", a.query);
  visit("key", a.key);
  visit("value", a.value);
  visit("attention_output", a.output);
  visit("query_bias", a.query_bias);
  visit("key_bias", a.key_bias);
  visit("value_bias", a.value_bias);
  visit("attention_output_bias", a.output_bias);
  visit("qk_scale", a.qk_scale);
}

struct Attention {
  nn::AttentionSizes sizes;
  double scale = 1;
  bool rotary = false;
  double score_cap = 0;
  std::function<void(Matrix<double>&)> query_norm, key_norm;  // in place; may be empty
  AttentionTensors w;

  Matrix<double> q_turned, k_turned, q, k, v;  // before and after qk_scale
  AttentionCore core;

  Matrix<double> forward(const Matrix<double>& x, const Matrix<double>& source) {
    q_turned = linear(x, w.query, w.query_bias);
    k_turned = linear(source, w.key, w.key_bias);
    v = linear(source, w.value, w.value_bias);
    if (query_norm) query_norm(q_turned);
    if (key_norm) key_norm(k_turned);
    if (rotary) q_turned = rotate(q_turned, sizes.query_tokens, sizes.head_dim, 1);
    if (rotary) k_turned = rotate(k_turned, sizes.key_tokens, sizes.head_dim, 1);
    const bool unit = present(w.qk_scale);
    q = unit ? unit_heads(q_turned, w.qk_scale, sizes.head_dim) : q_turned;
    k = unit ? unit_heads(k_turned, w.qk_scale, sizes.head_dim) : k_turned;
    core = attention_core(sizes, scale, q, k, v, {}, score_cap);
    return linear(core.heads, w.output, w.output_bias);
  }
};

}  // namespace scalewise::test::reference
