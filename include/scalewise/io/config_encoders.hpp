// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/config_reader.hpp"

namespace scalewise::inline io::detail {

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
  const std::string positions = c.text("position_embedding_type", "absolute");
  if (positions != "absolute") throw c.error("position_embedding_type", "\"absolute\"");
  return shape;
}

inline Shape vit_shape(const ConfigReader& c) {
  const long image = c.size_or("image_size", 224);
  const long patch = c.size_or("patch_size", 16);
  const long side = image / patch;
  if (side == 0) {
    throw c.error("patch_size", "at most image_size = " + std::to_string(image));
  }
  Shape shape = c.hidden_sizes("intermediate_size");
  shape.input = Input::patch;
  shape.context = c.product("image_size", side, side) + 1;
  shape.patch_dim = c.product("num_channels", c.size_or("num_channels", 3),
                              c.product("patch_size", patch, patch));
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
  shape.context = c.size("max_position_embeddings");
  shape.vocab = c.size("vocab_size");
  shape.tied_head = c.flag("tie_word_embeddings", true);
  shape.embedding_norm = true;
  shape.final_norm = false;
  shape.activation = c.activation("activation_function", "gelu");
  c.only("is_encoder_decoder", true);
  return shape;
}

}  // namespace scalewise::inline io::detail
