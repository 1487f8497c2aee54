// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// GPT-NeoX (Pythia) as in transformers, EleutherAI's own, and Megatron-LM's core. Read in: modeling_gpt_neox.py;
// gpt-neox ea7aefd8 megatron/model/{gpt2_model,transformer,word_embeddings,norms}.py;
// Megatron-LM core/models/gpt/gpt_layer_specs.py, core/transformer/{attention,mlp}.py and
// core/models/common/embeddings/language_model_embedding.py, and programs that convert its files.

#pragma once

#include <algorithm>
#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

/// Query, key and value of one head after the other.
inline Model gpt_neox(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("gpt-neox", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const Writer top(model, "gpt_neox.", "");
  top.table("embed_in.weight", "token_embedding", s.vocab, d);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("gpt_neox.layers.", n), numbered("layer.", n));
    layer.norm("input_layernorm", "attention_norm");
    layer.norm("post_attention_layernorm", "mlp_norm");
    layer.dense("attention.query_key_value", query_key_value_by_group(s), d, s.biases);
    layer.dense("attention.dense", "attention_output", d, d, s.biases);
    layer.dense("mlp.dense_h_to_4h", "mlp_up", d, s.d_ff, s.biases);
    layer.dense("mlp.dense_4h_to_h", "mlp_down", s.d_ff, d, s.biases);
    layer.buffer("attention.bias", {1, 1, s.context, s.context});
    layer.buffer("attention.masked_bias", {});
    const long rotated = std::max(2L, s.head_dim / 4);  // rotary_pct = 0.25
    layer.buffer("attention.rotary_emb.inv_freq", {rotated / 2});
  }
  top.norm("final_layer_norm", "final_norm");
  Writer(model, "", "").matrix("embed_out.weight", "head", d, s.vocab);
  return model;
}

/// EleutherAI's: one list of the embedding, a step without tensors, the layers, another such step, the norm and
/// the head. RMSNorm calls its gain scale; a gated MLP has the gate below.
inline Model neox(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("neox", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const Style style{.gain = s.norm_bias ? ".weight" : ".scale"};
  const auto at = [](long number) { return "sequential." + std::to_string(number) + "."; };
  Writer(model, at(0), "").table("word_embeddings.weight", "token_embedding", s.vocab, d);
  if (s.learned_positions) {
    Writer(model, at(0), "")
        .table("position_embeddings.weight", "position_embedding", s.context, d);
  }
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, at(n + 2), numbered("layer.", n), style);
    layer.norm("input_layernorm", "attention_norm");
    layer.dense("attention.query_key_value",
                s.kv_heads == s.heads ? query_key_value_by_group(s) : query_key_value(s), d,
                s.biases);
    layer.dense("attention.dense", "attention_output", s.heads * s.head_dim, d, s.biases);
    layer.norm("post_attention_layernorm", "mlp_norm");
    if (s.gated_mlp) {
      layer.dense("mlp.linear1", in_turn({{"mlp_up", s.d_ff}, {"mlp_gate", s.d_ff}}), d, s.biases);
    } else {
      layer.dense("mlp.linear1", "mlp_up", d, s.d_ff, s.biases);
    }
    layer.dense("mlp.linear2", "mlp_down", s.d_ff, d, s.biases);
    layer.buffer("attention.rotary_emb.inv_freq", {2});
  }
  Writer(model, at(s.depth + 3), "", style).norm("norm", "final_norm");
  if (!s.tied_head.value_or(false)) {
    Writer(model, at(s.depth + 4), "").matrix("final_linear.weight", "head", d, s.vocab);
  }
  return model;
}

/// With Transformer Engine a norm belongs to the matrix after it, and is stored under its name.
enum class MegatronNorms { of_their_own, of_the_next_matrix };

/// Queries of a group, its key, its value, and the next group; gate above up if there is a gate.
inline Model megatron(const Shape& shape, const std::string& title = "small",
                      MegatronNorms norms = MegatronNorms::of_their_own) {
  Model model = empty_model("megatron", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const bool own = norms == MegatronNorms::of_their_own;
  const Style fused{.gain = ".layer_norm_weight", .shift = ".layer_norm_bias"};
  const Writer top(model, "", "");
  top.table("embedding.word_embeddings.weight", "token_embedding", s.vocab, d);
  if (s.learned_positions) {
    top.table("embedding.position_embeddings.weight", "position_embedding", s.context, d);
  }
  for (long n = 0; n < s.depth; ++n) {
    const std::string names = numbered("decoder.layers.", n);
    const std::string entries = numbered("layer.", n);
    const Writer layer(model, names, entries);
    const Writer norm(model, names, entries, own ? Style{} : fused);
    norm.norm(own ? "input_layernorm" : "self_attention.linear_qkv", "attention_norm");
    layer.dense("self_attention.linear_proj", "attention_output", s.heads * s.head_dim, d,
                s.biases);
    layer.dense("self_attention.linear_qkv", query_key_value_by_group(s), d, s.biases);
    norm.norm(own ? "pre_mlp_layernorm" : "mlp.linear_fc1", "mlp_norm");
    if (s.gated_mlp) {
      layer.dense("mlp.linear_fc1", in_turn({{"mlp_gate", s.d_ff}, {"mlp_up", s.d_ff}}), d,
                  s.biases);
    } else {
      layer.dense("mlp.linear_fc1", "mlp_up", d, s.d_ff, s.biases);
    }
    layer.dense("mlp.linear_fc2", "mlp_down", s.d_ff, d, s.biases);
  }
  top.norm("decoder.final_layernorm", "final_norm");
  if (s.tied_head.value_or(false)) {
    model.aliases = {{"output_layer.weight", "embedding.word_embeddings.weight"}};
  } else {
    top.matrix("output_layer.weight", "head", d, s.vocab);
  }
  return model;
}

}  // namespace scalewise::test::published
