// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dialect/dialect.hpp"

namespace scalewise::dialect {

namespace detail {

inline constexpr TensorPattern hf_llama_patterns[] = {
    {"model.embed_tokens.weight", "token_embedding"},
    {"model.layers.{}.input_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"model.layers.{}.self_attn.q_proj.weight", "layer.{}.query"},
    {"model.layers.{}.self_attn.k_proj.weight", "layer.{}.key"},
    {"model.layers.{}.self_attn.v_proj.weight", "layer.{}.value"},
    {"model.layers.{}.self_attn.o_proj.weight", "layer.{}.attention_output"},
    {"model.layers.{}.self_attn.q_proj.bias", "layer.{}.query_bias"},
    {"model.layers.{}.self_attn.k_proj.bias", "layer.{}.key_bias"},
    {"model.layers.{}.self_attn.v_proj.bias", "layer.{}.value_bias"},
    {"model.layers.{}.self_attn.o_proj.bias", "layer.{}.attention_output_bias"},
    {"model.layers.{}.self_attn.q_norm.weight", "layer.{}.query_norm_gain"},
    {"model.layers.{}.self_attn.k_norm.weight", "layer.{}.key_norm_gain"},
    {"model.layers.{}.post_attention_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"model.layers.{}.mlp.gate_proj.weight", "layer.{}.mlp_gate"},
    {"model.layers.{}.mlp.up_proj.weight", "layer.{}.mlp_up"},
    {"model.layers.{}.mlp.down_proj.weight", "layer.{}.mlp_down"},
    {"model.layers.{}.mlp.gate_proj.bias", "layer.{}.mlp_gate_bias"},
    {"model.layers.{}.mlp.up_proj.bias", "layer.{}.mlp_up_bias"},
    {"model.layers.{}.mlp.down_proj.bias", "layer.{}.mlp_down_bias"},
    {"model.norm.weight", "final_norm_gain"},
    {"lm_head.weight", "head"},
    {"model.layers.{}.self_attn.rotary_emb.inv_freq", ""},
    {"model.rotary_emb.inv_freq", ""},
};

inline constexpr TensorPattern meta_llama_patterns[] = {
    {"tok_embeddings.weight", "token_embedding"},
    {"layers.{}.attention_norm.weight", "layer.{}.attention_norm_gain"},
    {"layers.{}.attention.wq.weight", "layer.{}.query"},
    {"layers.{}.attention.wk.weight", "layer.{}.key"},
    {"layers.{}.attention.wv.weight", "layer.{}.value"},
    {"layers.{}.attention.wo.weight", "layer.{}.attention_output"},
    {"layers.{}.attention.wq.bias", "layer.{}.query_bias"},
    {"layers.{}.attention.wk.bias", "layer.{}.key_bias"},
    {"layers.{}.attention.wv.bias", "layer.{}.value_bias"},
    {"layers.{}.attention.wo.bias", "layer.{}.attention_output_bias"},
    {"layers.{}.attention.q_norm.weight", "layer.{}.query_norm_gain"},
    {"layers.{}.attention.k_norm.weight", "layer.{}.key_norm_gain"},
    {"layers.{}.ffn_norm.weight", "layer.{}.mlp_norm_gain"},
    {"layers.{}.feed_forward.w1.weight", "layer.{}.mlp_gate"},
    {"layers.{}.feed_forward.w3.weight", "layer.{}.mlp_up"},
    {"layers.{}.feed_forward.w2.weight", "layer.{}.mlp_down"},
    {"norm.weight", "final_norm_gain"},
    {"output.weight", "head"},
    {"rope.freqs", ""},
    {"freqs_cis", ""},
    {"layers.{}.attention.qkv_linear.wq.weight", "layer.{}.query"},
    {"layers.{}.attention.qkv_linear.wk.weight", "layer.{}.key"},
    {"layers.{}.attention.qkv_linear.wv.weight", "layer.{}.value"},
    {"layers.{}.attention.qkv_linear.wq.bias", "layer.{}.query_bias"},
    {"layers.{}.attention.qkv_linear.wk.bias", "layer.{}.key_bias"},
    {"layers.{}.attention.qkv_linear.wv.bias", "layer.{}.value_bias"},
    {"lm_head.weight", "head"},
};

inline constexpr TensorPattern torchtitan_patterns[] = {
    {"tok_embeddings.weight", "token_embedding"},
    {"layers.{}.attention_norm.weight", "layer.{}.attention_norm_gain"},
    {"layers.{}.attention.qkv_linear.wqkv.weight", "layer.{}.query layer.{}.key layer.{}.value",
     Packing::key_groups},
    {"layers.{}.attention.qkv_linear.wqkv.bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias", Packing::key_groups},
    {"layers.{}.attention.wo.weight", "layer.{}.attention_output"},
    {"layers.{}.attention.wo.bias", "layer.{}.attention_output_bias"},
    {"layers.{}.attention.q_norm.weight", "layer.{}.query_norm_gain"},
    {"layers.{}.attention.k_norm.weight", "layer.{}.key_norm_gain"},
    {"layers.{}.ffn_norm.weight", "layer.{}.mlp_norm_gain"},
    {"layers.{}.feed_forward.w13.weight", "layer.{}.mlp_gate layer.{}.mlp_up",
     Packing::alternating},
    {"layers.{}.feed_forward.w2.weight", "layer.{}.mlp_down"},
    {"norm.weight", "final_norm_gain"},
    {"lm_head.weight", "head"},
};

inline constexpr TensorPattern gguf_llama_patterns[] = {
    {"token_embd.weight", "token_embedding"},
    {"blk.{}.attn_norm.weight", "layer.{}.attention_norm_gain"},
    {"blk.{}.attn_q.weight", "layer.{}.query"},
    {"blk.{}.attn_k.weight", "layer.{}.key"},
    {"blk.{}.attn_v.weight", "layer.{}.value"},
    {"blk.{}.attn_output.weight", "layer.{}.attention_output"},
    {"blk.{}.attn_q.bias", "layer.{}.query_bias"},
    {"blk.{}.attn_k.bias", "layer.{}.key_bias"},
    {"blk.{}.attn_v.bias", "layer.{}.value_bias"},
    {"blk.{}.attn_output.bias", "layer.{}.attention_output_bias"},
    {"blk.{}.attn_q_norm.weight", "layer.{}.query_norm_gain"},
    {"blk.{}.attn_k_norm.weight", "layer.{}.key_norm_gain"},
    {"blk.{}.ffn_norm.weight", "layer.{}.mlp_norm_gain"},
    {"blk.{}.ffn_gate.weight", "layer.{}.mlp_gate"},
    {"blk.{}.ffn_up.weight", "layer.{}.mlp_up"},
    {"blk.{}.ffn_down.weight", "layer.{}.mlp_down"},
    {"output_norm.weight", "final_norm_gain"},
    {"output.weight", "head"},
    {"rope_freqs.weight", ""},
};

inline constexpr TensorPattern olmo2_patterns[] = {
    {"model.embed_tokens.weight", "token_embedding"},
    {"model.layers.{}.self_attn.q_proj.weight", "layer.{}.query"},
    {"model.layers.{}.self_attn.k_proj.weight", "layer.{}.key"},
    {"model.layers.{}.self_attn.v_proj.weight", "layer.{}.value"},
    {"model.layers.{}.self_attn.o_proj.weight", "layer.{}.attention_output"},
    {"model.layers.{}.self_attn.q_norm.weight", "layer.{}.query_norm_gain"},
    {"model.layers.{}.self_attn.k_norm.weight", "layer.{}.key_norm_gain"},
    {"model.layers.{}.post_attention_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"model.layers.{}.mlp.gate_proj.weight", "layer.{}.mlp_gate"},
    {"model.layers.{}.mlp.up_proj.weight", "layer.{}.mlp_up"},
    {"model.layers.{}.mlp.down_proj.weight", "layer.{}.mlp_down"},
    {"model.layers.{}.post_feedforward_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"model.norm.weight", "final_norm_gain"},
    {"lm_head.weight", "head"},
    {"model.rotary_emb.inv_freq", ""},
};

inline constexpr TensorPattern phi3_patterns[] = {
    {"model.embed_tokens.weight", "token_embedding"},
    {"model.layers.{}.input_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"model.layers.{}.self_attn.qkv_proj.weight", "layer.{}.query layer.{}.key layer.{}.value"},
    {"model.layers.{}.self_attn.o_proj.weight", "layer.{}.attention_output"},
    {"model.layers.{}.post_attention_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"model.layers.{}.mlp.gate_up_proj.weight", "layer.{}.mlp_gate layer.{}.mlp_up"},
    {"model.layers.{}.mlp.down_proj.weight", "layer.{}.mlp_down"},
    {"model.norm.weight", "final_norm_gain"},
    {"lm_head.weight", "head"},
    {"model.layers.{}.self_attn.rotary_emb.inv_freq", ""},
    {"model.rotary_emb.inv_freq", ""},
};

}  // namespace detail

/// Source:   transformers, modeling_llama.py; Mistral, Qwen2 (biases of queries, keys and values),
///           Qwen3 (norms of queries and keys) and Gemma have the same names.
inline constexpr Dialect hf_llama{"hf-llama", "Hugging Face LLaMA, Mistral, Qwen2, Qwen3, Gemma",
                                  "model.", MatrixLayout::out_in, detail::hf_llama_patterns};

/// Source:   transformers, modeling_gemma.py: GemmaRMSNorm multiplies by 1 + weight, and embeddings are
///           multiplied by the root of hidden_size.
inline constexpr Dialect gemma{
    "gemma",
    "Hugging Face Gemma",
    "model.",
    MatrixLayout::out_in,
    detail::hf_llama_patterns,
    "the code's norms multiply by 1 + weight: subtract 1 from the means of gains, as apply() does",
    {.embedding = sqrt(symbols::n)}};

/// Source:   llama, model.py. w1 is the gate. A state_dict of torchtitan has the same names, with a segment more, biases of
///           Qwen2 and norms of queries and keys of Qwen3.
inline constexpr Dialect meta_llama{"meta-llama", "LLaMA by Meta, files of torchtitan", "",
                                    MatrixLayout::out_in, detail::meta_llama_patterns};

/// Source:   torchtitan b5bcd76c, models/llama3/__init__.py and qwen3/__init__.py, whose configurations have fuse_qkv
///           = True; models/common/attention.py, FusedQKVLinear: for each key head its query heads, the key, the
///           value; 07521c58, models/common/feed_forward.py, FeedForward: the rows of gate and up in turn. A state_dict
///           has all five apart.
inline constexpr Dialect torchtitan{"torchtitan", "torchtitan's Llama 3 and Qwen3", "",
                                    MatrixLayout::out_in, detail::torchtitan_patterns};

/// Source:   gguf-py, constants.py.
inline constexpr Dialect gguf_llama{"gguf-llama", "GGUF of LLaMA, Mistral, Qwen2, Qwen3, Gemma", "",
                                    MatrixLayout::out_in, detail::gguf_llama_patterns};

/// Source:   transformers, modeling_olmo2.py: norms after both branches, so that
///           post_attention_layernorm is another tensor than LLaMA's.
inline constexpr Dialect olmo2{"olmo2", "Hugging Face OLMo-2", "model.", MatrixLayout::out_in,
                               detail::olmo2_patterns};

/// Source:   transformers, modeling_phi3.py: [query, key, value] and [gate, up] are one matrix each.
inline constexpr Dialect phi3{"phi3", "Hugging Face Phi-3", "model.", MatrixLayout::out_in,
                              detail::phi3_patterns};

}  // namespace scalewise::dialect
