// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Models small enough to compare every entry of their gradients; no two sizes are alike.

#pragma once

#include "scalewise/architecture/shape.hpp"

namespace scalewise::test {

inline Shape token_shape() {
  Shape s{.d_model = 14, .depth = 2, .heads = 4, .kv_heads = 2, .head_dim = 6, .d_ff = 17};
  s.context = 8;
  s.vocab = 11;
  return s;
}

/// Two queries share each key, and no two sizes are equal.
inline Shape grouped_shape() {
  Shape s{
      .d_model = 8, .depth = 2, .heads = 4, .kv_heads = 2, .head_dim = 6, .d_ff = 10, .context = 9};
  s.vocab = 7;
  return s;
}

/// A GPT as nanoGPT makes it with bias=False.
inline Shape biasless_gpt(long width = 24, long depth = 2) {
  Shape s{.d_model = width, .depth = depth, .heads = 4, .d_ff = 40, .context = 16, .vocab = 50};
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
