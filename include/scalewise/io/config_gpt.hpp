// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/config_reader.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise::detail {

// Each model with the defaults that transformers has. A size is required when its default is the size
// of some model.

inline Shape gpt2_shape(const ConfigReader& c) {
  Shape shape;
  shape.d_model = c.size("n_embd");
  shape.depth = c.layers("n_layer");
  shape.heads = c.heads("n_head", "n_embd");
  shape.d_ff = c.size_or("n_inner", 0);  // 4 n_embd
  shape.context = c.size("n_positions");
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.activation = c.activation("activation_function", "gelu_new");
  c.only("add_cross_attention", false);
  c.only(
      "scale_attn_by_inverse_layer_idx", false,
      "scores are divided by the number of their layer, but a plan has one scale for all layers");
  return shape;
}

inline plan::CodeFactors gpt2_code(const ConfigReader& c) {
  plan::CodeFactors code;
  if (!c.flag("scale_attn_weights", true)) code.scores = 1;
  return code;
}

/// Both branches read the same stream at once; a plan treats them as one after the other.
inline Shape gpt_neox_shape(const ConfigReader& c) {
  Shape shape = c.hidden_sizes("intermediate_size");
  shape.context = c.size_or("max_position_embeddings", 2048);
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", false);
  shape.activation = c.activation("hidden_act", "gelu");
  shape.learned_positions = false;
  static_cast<void>(c.flag("use_parallel_residual", true));  // the tensors are the same
  c.only("attention_bias", true);
  return shape;
}

inline Shape opt_shape(const ConfigReader& c) {
  Shape shape = c.hidden_sizes("ffn_dim");
  shape.context = c.positions_after_two("max_position_embeddings");
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.activation = c.activation("activation_function", "relu");
  c.only("do_layer_norm_before", true);
  c.only("_remove_final_layer_norm", false);
  shape.biases = c.flag("enable_bias", true);
  shape.norm_gain = shape.norm_bias = c.flag("layer_norm_elementwise_affine", true);
  if (c.has("word_embed_proj_dim")) {
    c.same("word_embed_proj_dim", "hidden_size", shape.d_model, "a shape has one width");
  }
  return shape;
}

}  // namespace scalewise::detail
