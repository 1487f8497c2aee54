// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Small shapes of the published families: no two sizes are alike that a layout could mix up.

#pragma once

#include "scalewise/architecture/shape.hpp"

namespace scalewise::test::published {

/// Biases everywhere, learned positions, the head tied; all heads fill the width.
inline Shape small_gpt() {
  Shape s{.d_model = 24, .depth = 3, .heads = 6, .d_ff = 44, .context = 15, .vocab = 50};
  s.tied_head = true;
  return s;
}

/// Code bases that leave no choice about the width of the MLP.
inline Shape small_gpt_of_four_widths() {
  Shape s = small_gpt();
  s.d_ff = 4 * s.d_model;
  return s;
}

/// Sizes as in configurations of LLaMA and its relatives.
inline Shape llama_like(long d_model, long depth, long heads, long kv_heads, long head_dim,
                        long d_ff, long vocab, bool tied_head = false) {
  Shape s{.d_model = d_model, .depth = depth, .heads = heads, .kv_heads = kv_heads};
  s.head_dim = head_dim;
  s.d_ff = d_ff;
  s.context = 15;  // of buffers
  s.vocab = vocab;
  s.tied_head = tied_head;
  s.gated_mlp = true;
  s.biases = false;
  s.norm_bias = false;
  s.learned_positions = false;
  return s;
}

/// Three queries share each key; queries are wider than the model, keys narrower.
inline Shape small_llama() { return llama_like(24, 3, 6, 2, 8, 44, 50); }

/// Rotary positions, biases, a head of its own.
inline Shape small_neox() {
  Shape s = small_gpt();
  s.tied_head = false;
  s.learned_positions = false;
  return s;
}

/// Post-norm, segments, a bias on the tied head.
inline Shape small_bert() {
  Shape s = small_gpt();
  s.segments = 2;
  s.head_bias = true;
  s.embedding_norm = true;
  s.final_norm = false;
  return s;
}

inline Shape small_vit() {
  Shape s = small_gpt();
  s.input = Input::patch;
  s.vocab = 0;
  s.context = 10;    // a class token and nine patches
  s.patch_dim = 12;  // 3 colours of 2 x 2 pixels
  s.classes = 7;
  s.tied_head = false;
  s.class_token = true;
  return s;
}

/// Two stacks of different depth.
inline Shape small_t5() {
  Shape s{.d_model = 24, .depth = 3, .encoder_depth = 2, .heads = 6, .head_dim = 8, .d_ff = 44};
  s.vocab = 50;
  s.relative_buckets = 9;
  s.tied_head = true;
  s.biases = false;
  s.norm_bias = false;
  s.learned_positions = false;
  return s;
}

inline Shape small_bart() {
  Shape s = small_gpt();
  s.encoder_depth = 2;
  s.embedding_norm = true;
  s.final_norm = false;
  return s;
}

/// Post-norm with computed positions and a bias on the tied head.
inline Shape small_marian() {
  Shape s = small_gpt();
  s.encoder_depth = 2;
  s.learned_positions = false;
  s.head_bias = true;
  s.final_norm = false;
  return s;
}

inline Shape small_ngpt() {
  Shape s{
      .d_model = 24, .depth = 3, .heads = 6, .d_ff = 96, .vocab = 50, .blocks = Blocks::normalized};
  s.tied_head = false;
  s.gated_mlp = true;
  s.biases = false;
  s.learned_positions = false;
  return s;
}

}  // namespace scalewise::test::published
