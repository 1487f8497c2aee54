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

inline Shape bert_shape(const ConfigReader& c) {
  Shape shape = c.hidden_sizes("intermediate_size");
  shape.context = c.size("max_position_embeddings");
  shape.vocab = c.size("vocab_size");
  shape.segments = c.size_or("type_vocab_size", 2);
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.head_bias = true;
  shape.embedding_norm = true;
  shape.final_norm = false;
  shape.activation = c.activation("hidden_act", "gelu");
  c.only("add_cross_attention", false);
  if (c.find("embedding_size") != nullptr) {
    c.same("embedding_size", "hidden_size", shape.d_model, "a shape has one width");
  }
  const std::string positions = c.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw c.error("position_embedding_type", "\"absolute\"", "a shape has positions in a table");
  }
  return shape;
}

inline Shape vit_shape(const ConfigReader& c) {
  const auto [height, width] = c.sides("image_size", 224);
  const auto [patch_height, patch_width] = c.sides("patch_size", 16);
  if (patch_height > height || patch_width > width) {
    throw c.error("patch_size",
                  "at most image_size = " + std::to_string(patch_height > height ? height : width));
  }
  Shape shape = c.hidden_sizes("intermediate_size");
  shape.input = Input::patch;
  shape.context = c.product("image_size", height / patch_height, width / patch_width) + 1;
  shape.patch_dim = c.product("num_channels", c.size_or("num_channels", 3),
                              c.product("patch_size", patch_height, patch_width));
  shape.classes = c.classes();
  shape.tied_head = false;
  shape.head_bias = true;
  shape.class_token = true;
  shape.activation = c.activation("hidden_act", "gelu");
  c.only("qkv_bias", true);
  return shape;
}

inline Shape t5_shape(const ConfigReader& c) {
  Shape shape;
  shape.d_model = c.size("d_model");
  shape.encoder_depth = c.layers("num_layers");
  shape.depth = c.layers("num_decoder_layers", shape.encoder_depth);
  shape.heads = c.size("num_heads");
  shape.head_dim = c.size_or("d_kv", 64);
  c.product("d_kv", shape.heads, shape.head_dim);
  shape.d_ff = c.size("d_ff");
  shape.context = c.size_or("n_positions", 0);  // no tensor has that size
  shape.vocab = c.size("vocab_size");
  shape.relative_buckets = c.size_or("relative_attention_num_buckets", 32);
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.gated_mlp = c.text("feed_forward_proj", "relu").starts_with("gated-");
  shape.activation = c.activation("feed_forward_proj", "relu");
  shape.biases = false;
  shape.norm_bias = false;
  shape.learned_positions = false;
  c.only("is_encoder_decoder", true);
  return shape;
}

/// Scores are not divided; a tied model multiplies the last hidden state by 1/√d_model.
inline plan::CodeFactors t5_code(const ConfigReader& c) {
  plan::CodeFactors code{.scores = 1};
  const bool tied = c.flag("tie_word_embeddings", true);
  if (c.flag("scale_decoder_outputs", tied)) code.tied_logits = 1 / sqrt(symbols::n);
  return code;
}

inline Shape bart_shape(const ConfigReader& c) {
  Shape shape;
  shape.d_model = c.size("d_model");
  shape.encoder_depth = c.layers("encoder_layers");
  shape.depth = c.layers("decoder_layers");
  shape.heads = c.heads("encoder_attention_heads", "d_model");
  const char* hint = "a shape has one such size for both stacks";
  c.same("decoder_attention_heads", "encoder_attention_heads", shape.heads, hint);
  shape.d_ff = c.size("encoder_ffn_dim");
  c.same("decoder_ffn_dim", "encoder_ffn_dim", shape.d_ff, hint);
  shape.context = c.positions_after_two("max_position_embeddings");
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.embedding_norm = true;
  shape.final_norm = false;
  shape.activation = c.activation("activation_function", "gelu");
  c.only("is_encoder_decoder", true);
  for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings",
                          "do_blenderbot_90_layernorm", "add_bias_logits"}) {
    c.only(key, false);
  }
  c.only("normalize_embedding", true);
  if (const auto* extra = c.find("extra_pos_embeddings"); extra != nullptr && *extra != 2) {
    throw c.error("extra_pos_embeddings", "2", "the first two rows of positions are unused");
  }
  static_cast<void>(c.find("num_hidden_layers"));  // transformers writes encoder_layers into it
  return shape;
}

inline plan::CodeFactors bart_code(const ConfigReader& c) {
  plan::CodeFactors code;
  if (c.flag("scale_embedding", false)) code.embedding = sqrt(symbols::n);
  return code;
}

}  // namespace scalewise::detail
