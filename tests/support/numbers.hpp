// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shapes, and the comparison of two numbers, for the tests that compute those of a plan anew.

#pragma once

#include <algorithm>
#include <cmath>

#include "scalewise/scalewise.hpp"

namespace scalewise::test {

inline bool near(double a, double b) {
  return std::abs(a - b) <= 1e-13 * std::max(std::abs(a), std::abs(b));
}

/// Grouped queries, heads wider than the model, d_ff = 25/12 n, gated.
inline Shape decoder() {
  return {.d_model = 96,
          .depth = 5,
          .heads = 6,
          .kv_heads = 2,
          .head_dim = 24,
          .d_ff = 200,
          .context = 32,
          .vocab = 101,
          .iterations = 8000,
          .gated_mlp = true};
}

/// The base of `decoder`: n ratio 3, F 2.5, L 2.5, C 3, H*C 144/32 = 4.5, K*C 3, D 8.
inline Shape decoder_base() {
  Shape s = decoder();
  s.d_model = 32;
  s.depth = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 8;
  s.d_ff = 80;
  s.iterations = 1000;
  return s;
}

/// A vision transformer.
inline Shape vision() {
  return {.input = Input::patch,
          .d_model = 192,
          .depth = 3,
          .heads = 3,
          .context = 17,
          .patch_dim = 48,
          .classes = 10};
}

}  // namespace scalewise::test
