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

/// The part that all decoders with rotary positions and gated MLPs share.
inline Shape rotary_shape(const ConfigReader& c, long context, long head_dim = 0,
                          const char* activation = "hidden_act") {
  Shape shape;
  shape.d_model = c.size("hidden_size");
  shape.depth = c.layers("num_hidden_layers");
  shape.head_dim = c.size_or("head_dim", head_dim);
  shape.heads = shape.head_dim == 0 ? c.heads("num_attention_heads", "hidden_size",
                                              "or give head_dim, the size of a head in the tensors")
                                    : c.size("num_attention_heads");
  if (shape.head_dim > 0) c.product("head_dim", shape.heads, shape.head_dim);
  shape.d_ff = c.size("intermediate_size");
  shape.context = c.size_or("max_position_embeddings", context);
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", false);
  shape.gated_mlp = true;
  shape.activation = c.activation(activation, "silu");
  shape.biases = false;
  shape.norm_bias = false;
  shape.learned_positions = false;
  return shape;
}

inline Shape llama_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 2048);
  c.read_kv_heads(shape, shape.heads);
  const bool attention = c.flag("attention_bias", false), mlp = c.flag("mlp_bias", false);
  if (mlp && !attention) {
    throw c.error("mlp_bias", "false, or attention_bias = true as well",
                  "a shape has no biases of the MLP alone");
  }
  shape.biases = mlp;
  if (attention && !mlp) shape.attention_biases = AttentionBiases::all;
  return shape;
}

/// Granite: LLaMA's tensors, and four multipliers.
inline plan::CodeFactors granite_code(const ConfigReader& c) {
  plan::CodeFactors code;
  code.scores = c.factor("attention_multiplier", 1);
  code.embedding = c.factor("embedding_multiplier", 1);
  code.logits = code.tied_logits = 1 / c.factor("logits_scaling", 1);
  code.branch = c.factor("residual_multiplier", 1);
  return code;
}

inline Shape mistral_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 131072);
  // transformers: 8 when there is no such key, as many as heads when it is null.
  c.read_kv_heads(shape, c.has("num_key_value_heads") ? shape.heads : 8);
  return shape;
}

inline Shape qwen2_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 32768);
  c.read_kv_heads(shape, c.has("num_key_value_heads") ? shape.heads : 32);
  shape.attention_biases = AttentionBiases::qkv;
  c.only("qkv_bias", true);
  return shape;
}

inline Shape qwen3_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 32768, 128);
  c.read_kv_heads(shape, c.has("num_key_value_heads") ? shape.heads : 32);
  if (c.flag("attention_bias", false)) shape.attention_biases = AttentionBiases::all;
  shape.qk_norm = QkNorm::head;
  return shape;
}

/// Norms stand after the branches, where a plan has those before them: the tensors are the same.
inline Shape olmo2_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 2048);
  c.read_kv_heads(shape, shape.heads);
  if (c.flag("attention_bias", false)) shape.attention_biases = AttentionBiases::all;
  shape.qk_norm = QkNorm::full;
  return shape;
}

inline Shape gemma_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 8192, 256, "hidden_activation");
  c.read_kv_heads(shape, c.has("num_key_value_heads") ? shape.heads : 16);
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.activation = c.activation("hidden_activation", c.text("hidden_act", "gelu_pytorch_tanh"));
  if (c.flag("attention_bias", false)) shape.attention_biases = AttentionBiases::all;
  return shape;
}

inline plan::CodeFactors gemma_code(const ConfigReader&) { return {.embedding = sqrt(symbols::n)}; }

inline Shape phi3_shape(const ConfigReader& c) {
  Shape shape = rotary_shape(c, 4096);
  c.read_kv_heads(shape, shape.heads);
  return shape;
}

}  // namespace scalewise::detail
