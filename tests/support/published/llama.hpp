// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// LLaMA and what is built like it. Read in: transformers modeling_{qwen2,phi3,gemma}.py (LLaMA's
// names are theirs), torchtitan models/llama3/state_dict_adapter.py and its history, llama.cpp
// gguf-py constants.py, and programs that load Meta's files.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

namespace detail {

/// Choices by which the relatives of LLaMA differ from it.
struct LlamaKind {
  bool query_key_value_biases = false;
  bool output_bias = false;
  bool fused = false;   // as Phi-3
  long query_norm = 0;  // size of the gain on queries, or none
  long key_norm = 0;    // likewise
  std::string attention_norm = "input_layernorm";
  std::string mlp_norm = "post_attention_layernorm";
};

inline void hf_llama_layer(const Writer& layer, const Shape& s, const LlamaKind& kind) {
  const long d = s.d_model;
  const long queries = s.heads * s.head_dim;
  const long keys = s.kv_heads * s.head_dim;
  const bool three = s.biases || kind.query_key_value_biases;
  if (kind.fused) {
    layer.dense("self_attn.qkv_proj", query_key_value(s), d, three);
  } else {
    layer.dense("self_attn.q_proj", "query", d, queries, three);
    layer.dense("self_attn.k_proj", "key", d, keys, three);
    layer.dense("self_attn.v_proj", "value", d, keys, three);
  }
  layer.dense("self_attn.o_proj", "attention_output", queries, d, s.biases || kind.output_bias);
  if (kind.query_norm > 0) {
    layer.vector("self_attn.q_norm.weight", "query_norm_gain", kind.query_norm);
    layer.vector("self_attn.k_norm.weight", "key_norm_gain", kind.key_norm);
  }
  if (kind.fused) {
    layer.dense("mlp.gate_up_proj", in_turn({{"mlp_gate", s.d_ff}, {"mlp_up", s.d_ff}}), d,
                s.biases);
  } else {
    layer.dense("mlp.gate_proj", "mlp_gate", d, s.d_ff, s.biases);
    layer.dense("mlp.up_proj", "mlp_up", d, s.d_ff, s.biases);
  }
  layer.dense("mlp.down_proj", "mlp_down", s.d_ff, d, s.biases);
  layer.norm(kind.attention_norm, "attention_norm");
  layer.norm(kind.mlp_norm, "mlp_norm");
}

inline Model hf_llama_model(const std::string& dialect, const std::string& title,
                            const Shape& shape, const LlamaKind& kind) {
  Model model = empty_model(dialect, title, shape);
  const Shape& s = model.shape;
  const Writer top(model, "model.", "");
  top.table("embed_tokens.weight", "token_embedding", s.vocab, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    hf_llama_layer(Writer(model, numbered("model.layers.", n), numbered("layer.", n)), s, kind);
  }
  top.norm("norm", "final_norm");
  if (s.tied_head.value_or(false)) {
    model.aliases = {{"lm_head.weight", "model.embed_tokens.weight"}};
  } else {
    Writer(model, "", "").matrix("lm_head.weight", "head", s.d_model, s.vocab);
  }
  return model;
}

/// A layer but its queries, keys and values, and what enters the MLP, in Meta's names.
inline void meta_rest(const Writer& layer, const Shape& s) {
  layer.dense("attention.wo", "attention_output", s.heads * s.head_dim, s.d_model, s.biases);
  layer.dense("feed_forward.w2", "mlp_down", s.d_ff, s.d_model, s.biases);
  layer.norm("attention_norm", "attention_norm");
  layer.norm("ffn_norm", "mlp_norm");
}

}  // namespace detail

/// Hugging Face's LLaMA, and Mistral.
inline Model hf_llama(const Shape& shape, const std::string& title = "small") {
  Model model = detail::hf_llama_model("hf-llama", title, shape, {});
  const Shape& s = model.shape;
  for (long n = 0; n < s.depth; ++n) {
    Writer(model, numbered("model.layers.", n), "")
        .buffer("self_attn.rotary_emb.inv_freq", {s.head_dim / 2});  // files of 2023
  }
  return model;
}

/// LLaMA's shapes, one tensor for both matrices into the MLP and one for three of attention.
inline Model phi3(const Shape& shape, const std::string& title = "small") {
  return detail::hf_llama_model("phi3", title, shape, {.fused = true});
}

/// LLaMA's names. Gains are stored minus 1; the head is tied.
inline Model gemma(const Shape& shape, const std::string& title = "small") {
  return detail::hf_llama_model("gemma", title, shape, {});
}

/// How torchtitan renamed some tensors in 2026.
enum class MetaNames { as_released, torchtitan_2026 };

/// Meta's own files, and torchtitan.
inline Model meta_llama(const Shape& shape, const std::string& title = "small",
                        MetaNames names = MetaNames::as_released) {
  Model model = empty_model("meta-llama", title, shape);
  const Shape& s = model.shape;
  const bool newer = names == MetaNames::torchtitan_2026;
  const std::string three = newer ? "attention.qkv_linear." : "attention.";
  const std::string head = newer ? "lm_head.weight" : "output.weight";
  const long queries = s.heads * s.head_dim;
  const long keys = s.kv_heads * s.head_dim;
  const Writer top(model, "", "");
  top.table("tok_embeddings.weight", "token_embedding", s.vocab, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("layers.", n), numbered("layer.", n));
    layer.dense(three + "wq", "query", s.d_model, queries, s.biases);
    layer.dense(three + "wk", "key", s.d_model, keys, s.biases);
    layer.dense(three + "wv", "value", s.d_model, keys, s.biases);
    layer.dense("feed_forward.w1", "mlp_gate", s.d_model, s.d_ff, s.biases);
    layer.dense("feed_forward.w3", "mlp_up", s.d_model, s.d_ff, s.biases);
    detail::meta_rest(layer, s);
  }
  top.norm("norm", "final_norm");
  if (s.tied_head.value_or(false)) {
    model.aliases = {{head, "tok_embeddings.weight"}};
  } else {
    top.matrix(head, "head", s.d_model, s.vocab);
  }
  if (!newer) {
    top.buffer("rope.freqs", {s.head_dim / 2});            // Meta
    top.buffer("freqs_cis", {s.context, s.head_dim / 2});  // torchtitan until August 2025
  }
  return model;
}

/// torchtitan b5bcd76c, models/llama3/model.py and models/common/attention.py, FusedQKVLinear: for each key head its
/// queries, the key, the value; 07521c58, models/common/feed_forward.py, _split_w13_on_save: rows 0, 2, … of w13 are w1,
/// the others w3.
inline Model torchtitan(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("torchtitan", title, shape);
  const Shape& s = model.shape;
  const Writer top(model, "", "");
  top.table("tok_embeddings.weight", "token_embedding", s.vocab, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("layers.", n), numbered("layer.", n));
    layer.dense("attention.qkv_linear.wqkv", query_key_value_by_group(s), s.d_model, s.biases);
    std::vector<Slice> gate_and_up{{"mlp_gate", {}}, {"mlp_up", {}}};
    for (long row = 0; row < 2 * s.d_ff; ++row) {
      gate_and_up[static_cast<std::size_t>(row % 2)].runs.emplace_back(row, 1);
    }
    layer.matrix("feed_forward.w13.weight", gate_and_up, s.d_model);
    detail::meta_rest(layer, s);
  }
  top.norm("norm", "final_norm");
  if (s.tied_head.value_or(false)) {
    model.aliases = {{"lm_head.weight", "tok_embeddings.weight"}};
  } else {
    top.matrix("lm_head.weight", "head", s.d_model, s.vocab);
  }
  return model;
}

/// GGUF, its sizes turned round into the order of torch. A tied head is left out.
inline Model gguf_llama(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("gguf-llama", title, shape);
  const Shape& s = model.shape;
  const long queries = s.heads * s.head_dim;
  const long keys = s.kv_heads * s.head_dim;
  const Writer top(model, "", "");
  top.table("token_embd.weight", "token_embedding", s.vocab, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("blk.", n), numbered("layer.", n));
    layer.norm("attn_norm", "attention_norm");
    layer.dense("attn_q", "query", s.d_model, queries, s.biases);
    layer.dense("attn_k", "key", s.d_model, keys, s.biases);
    layer.dense("attn_v", "value", s.d_model, keys, s.biases);
    layer.dense("attn_output", "attention_output", queries, s.d_model, s.biases);
    layer.norm("ffn_norm", "mlp_norm");
    layer.dense("ffn_gate", "mlp_gate", s.d_model, s.d_ff, s.biases);
    layer.dense("ffn_up", "mlp_up", s.d_model, s.d_ff, s.biases);
    layer.dense("ffn_down", "mlp_down", s.d_ff, s.d_model, s.biases);
  }
  top.norm("output_norm", "final_norm");
  if (!s.tied_head.value_or(false)) top.matrix("output.weight", "head", s.d_model, s.vocab);
  top.buffer("rope_freqs.weight", {s.head_dim / 2});  // from LLaMA 3.1 on
  return model;
}

}  // namespace scalewise::test::published
