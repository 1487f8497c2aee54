// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Models small enough to compare every entry of their gradients; no two sizes are alike.

#pragma once

#include "scalewise/architecture/shape.hpp"

namespace scalewise::test {

inline Shape token_shape() {
  Shape s;
  s.d_model = 14;
  s.depth = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 6;
  s.d_ff = 17;
  s.context = 8;
  s.vocab = 11;
  return s;
}

/// Two queries share each key, and no two sizes are equal.
inline Shape grouped_shape() {
  Shape s;
  s.d_model = 8;
  s.depth = 2;
  s.heads = 4;
  s.kv_heads = 2;
  s.head_dim = 6;
  s.d_ff = 10;
  s.context = 9;
  s.vocab = 7;
  return s;
}

/// A GPT as nanoGPT makes it with bias=False.
inline Shape biasless_gpt(long width = 24, long depth = 2) {
  Shape s;
  s.d_model = width;
  s.depth = depth;
  s.heads = 4;
  s.d_ff = 40;
  s.context = 16;
  s.vocab = 50;
  s.tied_head = true;
  s.biases = false;
  s.norm_bias = false;
  return resolved(s);
}

inline Shape patch_shape() {
  Shape s = token_shape();
  s.input = Input::patch;
  s.patch_dim = 10;
  s.classes = 9;
  return s;
}

}  // namespace scalewise::test
