// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A model in plain C++ that does not use this library.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace own {

using Size = std::size_t;

inline constexpr Size vocab = 32, examples = 64;

using Floats = std::vector<float>;
using Symbols = std::vector<Size>;

/// A tensor with its gradient and Adam's two moments.
struct Tensor {
  Floats w, g, m, v;
  double rate = 0;
};

/// Next symbol from the current one: x = E[s] + relu(norm(E[s]) U) D, logits = norm(x) H / multiplier.
struct Model {
  Size n = 0;
  float logit_multiplier = 1;
  Tensor embedding, up, down, head;

  // of one pass, example by example
  Floats x, unit, hidden, branch, final_hidden, logits;
};

inline void init(Tensor& t, Size size, double deviation, double rate, std::mt19937& random) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  t.w.resize(size);
  for (float& w : t.w) w = normal(random);
  t.g.assign(size, 0);
  t.m.assign(size, 0);
  t.v.assign(size, 0);
  t.rate = rate;
}

// y (examples, to) += x (examples, from) w (from, to)
inline void multiply(const Floats& x, const Tensor& w, Floats& y, Size from, Size to) {
  for (Size r = 0; r < examples; ++r)
    for (Size i = 0; i < from; ++i)
      for (Size o = 0; o < to; ++o) y[r * to + o] += x[r * from + i] * w.w[i * to + o];
}

// The gradients of multiply.
inline void multiply_back(const Floats& x, Tensor& w, const Floats& dy, Floats& dx, Size from,
                          Size to) {
  for (Size r = 0; r < examples; ++r)
    for (Size i = 0; i < from; ++i)
      for (Size o = 0; o < to; ++o) {
        dx[r * from + i] += dy[r * to + o] * w.w[i * to + o];
        w.g[i * to + o] += dy[r * to + o] * x[r * from + i];
      }
}

inline void normalize(const Floats& x, Floats& y, Size rows, Size n) {
  for (Size r = 0; r < rows; ++r) {
    float square = 1e-6F;
    for (Size i = 0; i < n; ++i) square += x[r * n + i] * x[r * n + i];
    const float over = std::sqrt(static_cast<float>(n) / square);
    for (Size i = 0; i < n; ++i) y[r * n + i] = over * x[r * n + i];
  }
}

inline void normalize_back(const Floats& x, const Floats& y, const Floats& dy, Floats& dx,
                           Size rows, Size n) {
  for (Size r = 0; r < rows; ++r) {
    float square = 1e-6F, dot = 0;
    for (Size i = 0; i < n; ++i) square += x[r * n + i] * x[r * n + i];
    for (Size i = 0; i < n; ++i) dot += dy[r * n + i] * y[r * n + i] / static_cast<float>(n);
    const float over = std::sqrt(static_cast<float>(n) / square);
    for (Size i = 0; i < n; ++i) dx[r * n + i] += over * (dy[r * n + i] - dot * y[r * n + i]);
  }
}

inline float forward_backward(Model& m, const Symbols& symbols, const Symbols& next) {
  const Size n = m.n, f = 4 * n;
  m.x.assign(examples * n, 0);
  for (Size r = 0; r < examples; ++r)
    for (Size i = 0; i < n; ++i) m.x[r * n + i] = m.embedding.w[symbols[r] * n + i];
  m.unit.assign(examples * n, 0);
  m.hidden.assign(examples * f, 0);
  m.branch.assign(examples * n, 0);
  m.final_hidden.assign(examples * n, 0);
  m.logits.assign(examples * vocab, 0);
  normalize(m.x, m.unit, examples, n);
  multiply(m.unit, m.up, m.hidden, n, f);
  for (float& h : m.hidden) h = h > 0 ? h : 0;
  multiply(m.hidden, m.down, m.branch, f, n);
  Floats stream = m.x;
  for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += m.branch[i];
  normalize(stream, m.final_hidden, examples, n);
  multiply(m.final_hidden, m.head, m.logits, n, vocab);
  for (float& z : m.logits) z *= m.logit_multiplier;

  float loss = 0;
  Floats dlogits = m.logits;
  for (Size r = 0; r < examples; ++r) {
    float sum = 0;
    for (Size k = 0; k < vocab; ++k) sum += std::exp(m.logits[r * vocab + k]);
    loss += (std::log(sum) - m.logits[r * vocab + next[r]]) / examples;
    for (Size k = 0; k < vocab; ++k) {
      const float p = std::exp(m.logits[r * vocab + k]) / sum;
      dlogits[r * vocab + k] = m.logit_multiplier * (p - (k == next[r] ? 1.F : 0.F)) / examples;
    }
  }
  for (Tensor* t : {&m.embedding, &m.up, &m.down, &m.head}) t->g.assign(t->w.size(), 0);
  Floats dfinal(examples * n), dstream(examples * n), dhidden(examples * f), dunit(examples * n);
  multiply_back(m.final_hidden, m.head, dlogits, dfinal, n, vocab);
  normalize_back(stream, m.final_hidden, dfinal, dstream, examples, n);
  multiply_back(m.hidden, m.down, dstream, dhidden, f, n);
  for (std::size_t i = 0; i < dhidden.size(); ++i) dhidden[i] *= m.hidden[i] > 0 ? 1.F : 0.F;
  multiply_back(m.unit, m.up, dhidden, dunit, n, f);
  normalize_back(m.x, m.unit, dunit, dstream, examples, n);
  for (Size r = 0; r < examples; ++r)
    for (Size i = 0; i < n; ++i) m.embedding.g[symbols[r] * n + i] += dstream[r * n + i];
  return loss;
}

inline void adam(Tensor& t, int step) {
  const double first = 1 - std::pow(0.9, step), second = 1 - std::pow(0.95, step);
  for (std::size_t i = 0; i < t.w.size(); ++i) {
    t.m[i] = 0.9F * t.m[i] + 0.1F * t.g[i];
    t.v[i] = 0.95F * t.v[i] + 0.05F * t.g[i] * t.g[i];
    t.w[i] -= static_cast<float>(t.rate * (t.m[i] / first) / (std::sqrt(t.v[i] / second) + 1e-12));
  }
}

}  // namespace own
