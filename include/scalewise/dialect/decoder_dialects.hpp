// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "scalewise/dialect/dialect.hpp"

namespace scalewise::dialect {

namespace detail {

template <std::size_t size>
constexpr std::array<TensorPattern, size + 2> with_heads(const TensorPattern (&patterns)[size],
                                                         std::string_view first,
                                                         std::string_view second) {
  std::array<TensorPattern, size + 2> all{};
  all[0] = {first, "head"};
  all[1] = {second, "head"};
  for (std::size_t i = 0; i < size; ++i) all[i + 2] = patterns[i];
  return all;
}

inline constexpr TensorPattern gpt_neox_body[] = {
    {"gpt_neox.embed_in.weight", "token_embedding"},
    {"gpt_neox.layers.{}.input_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"gpt_neox.layers.{}.input_layernorm.bias", "layer.{}.attention_norm_bias"},
    {"gpt_neox.layers.{}.attention.query_key_value.weight",
     "layer.{}.query layer.{}.key layer.{}.value", Packing::key_groups},
    {"gpt_neox.layers.{}.attention.query_key_value.bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias", Packing::key_groups},
    {"gpt_neox.layers.{}.attention.dense.weight", "layer.{}.attention_output"},
    {"gpt_neox.layers.{}.attention.dense.bias", "layer.{}.attention_output_bias"},
    {"gpt_neox.layers.{}.post_attention_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"gpt_neox.layers.{}.post_attention_layernorm.bias", "layer.{}.mlp_norm_bias"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.weight", "layer.{}.mlp_up"},
    {"gpt_neox.layers.{}.mlp.dense_h_to_4h.bias", "layer.{}.mlp_up_bias"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.weight", "layer.{}.mlp_down"},
    {"gpt_neox.layers.{}.mlp.dense_4h_to_h.bias", "layer.{}.mlp_down_bias"},
    {"gpt_neox.final_layer_norm.weight", "final_norm_gain"},
    {"gpt_neox.final_layer_norm.bias", "final_norm_bias"},
    {"gpt_neox.layers.{}.attention.bias", ""},
    {"gpt_neox.layers.{}.attention.masked_bias", ""},
    {"gpt_neox.layers.{}.attention.rotary_emb.inv_freq", ""},
    {"gpt_neox.rotary_emb.inv_freq", ""},
};

inline constexpr auto gpt_neox_patterns =
    with_heads(gpt_neox_body, "embed_out.weight", "lm_head.weight");
inline constexpr auto gpt_neox_5_patterns =
    with_heads(gpt_neox_body, "lm_head.weight", "embed_out.weight");

// Layers follow the embedding and a step without tensors, and are followed by one. Norms have `scale` where
// they are RMSNorm; older versions call the matrices of the MLP by other names.
inline constexpr TensorPattern neox_patterns[] = {
    {"sequential.0.word_embeddings.weight", "token_embedding"},
    {"tied_modules.embed.word_embeddings.weight", "token_embedding"},
    {"sequential.0.position_embeddings.weight", "position_embedding"},
    {"tied_modules.embed.position_embeddings.weight", "position_embedding"},
    {"sequential.{2}.input_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"sequential.{2}.input_layernorm.scale", "layer.{}.attention_norm_gain"},
    {"sequential.{2}.input_layernorm.bias", "layer.{}.attention_norm_bias"},
    {"sequential.{2}.attention.query_key_value.weight",
     "layer.{}.query layer.{}.key layer.{}.value", Packing::heads},
    {"sequential.{2}.attention.query_key_value.bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias", Packing::heads},
    {"sequential.{2}.attention.dense.weight", "layer.{}.attention_output"},
    {"sequential.{2}.attention.dense.bias", "layer.{}.attention_output_bias"},
    {"sequential.{2}.post_attention_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"sequential.{2}.post_attention_layernorm.scale", "layer.{}.mlp_norm_gain"},
    {"sequential.{2}.post_attention_layernorm.bias", "layer.{}.mlp_norm_bias"},
    {"sequential.{2}.mlp.linear1.weight", "layer.{}.mlp_up layer.{}.mlp_gate"},
    {"sequential.{2}.mlp.linear1.bias", "layer.{}.mlp_up_bias layer.{}.mlp_gate_bias"},
    {"sequential.{2}.mlp.linear2.weight", "layer.{}.mlp_down"},
    {"sequential.{2}.mlp.linear2.bias", "layer.{}.mlp_down_bias"},
    {"sequential.{2}.mlp.dense_h_to_4h.weight", "layer.{}.mlp_up layer.{}.mlp_gate"},
    {"sequential.{2}.mlp.dense_h_to_4h.bias", "layer.{}.mlp_up_bias layer.{}.mlp_gate_bias"},
    {"sequential.{2}.mlp.dense_4h_to_h.weight", "layer.{}.mlp_down"},
    {"sequential.{2}.mlp.dense_4h_to_h.bias", "layer.{}.mlp_down_bias"},
    {"sequential.{3}.norm.weight", "final_norm_gain"},
    {"sequential.{3}.norm.scale", "final_norm_gain"},
    {"sequential.{3}.norm.bias", "final_norm_bias"},
    {"sequential.{4}.final_linear.weight", "head"},
    {"sequential.{}.attention.rotary_emb.inv_freq", ""},
};

inline constexpr TensorPattern opt_patterns[] = {
    {"model.decoder.embed_tokens.weight", "token_embedding"},
    {"model.decoder.embed_positions.weight", "position_embedding"},
    {"model.decoder.layers.{}.self_attn_layer_norm.weight", "layer.{}.attention_norm_gain"},
    {"model.decoder.layers.{}.self_attn_layer_norm.bias", "layer.{}.attention_norm_bias"},
    {"model.decoder.layers.{}.self_attn.q_proj.weight", "layer.{}.query"},
    {"model.decoder.layers.{}.self_attn.q_proj.bias", "layer.{}.query_bias"},
    {"model.decoder.layers.{}.self_attn.k_proj.weight", "layer.{}.key"},
    {"model.decoder.layers.{}.self_attn.k_proj.bias", "layer.{}.key_bias"},
    {"model.decoder.layers.{}.self_attn.v_proj.weight", "layer.{}.value"},
    {"model.decoder.layers.{}.self_attn.v_proj.bias", "layer.{}.value_bias"},
    {"model.decoder.layers.{}.self_attn.out_proj.weight", "layer.{}.attention_output"},
    {"model.decoder.layers.{}.self_attn.out_proj.bias", "layer.{}.attention_output_bias"},
    {"model.decoder.layers.{}.final_layer_norm.weight", "layer.{}.mlp_norm_gain"},
    {"model.decoder.layers.{}.final_layer_norm.bias", "layer.{}.mlp_norm_bias"},
    {"model.decoder.layers.{}.fc1.weight", "layer.{}.mlp_up"},
    {"model.decoder.layers.{}.fc1.bias", "layer.{}.mlp_up_bias"},
    {"model.decoder.layers.{}.fc2.weight", "layer.{}.mlp_down"},
    {"model.decoder.layers.{}.fc2.bias", "layer.{}.mlp_down_bias"},
    {"model.decoder.final_layer_norm.weight", "final_norm_gain"},
    {"model.decoder.final_layer_norm.bias", "final_norm_bias"},
    {"lm_head.weight", "head"},
};

// Norms may be within the layer that follows them (Transformer Engine).
inline constexpr TensorPattern megatron_patterns[] = {
    {"embedding.word_embeddings.weight", "token_embedding"},
    {"embedding.position_embeddings.weight", "position_embedding"},
    {"decoder.layers.{}.input_layernorm.weight", "layer.{}.attention_norm_gain"},
    {"decoder.layers.{}.input_layernorm.bias", "layer.{}.attention_norm_bias"},
    {"decoder.layers.{}.self_attention.linear_qkv.layer_norm_weight",
     "layer.{}.attention_norm_gain"},
    {"decoder.layers.{}.self_attention.linear_qkv.layer_norm_bias", "layer.{}.attention_norm_bias"},
    {"decoder.layers.{}.self_attention.linear_qkv.weight",
     "layer.{}.query layer.{}.key layer.{}.value", Packing::key_groups},
    {"decoder.layers.{}.self_attention.linear_qkv.bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias", Packing::key_groups},
    {"decoder.layers.{}.self_attention.q_layernorm.weight", "layer.{}.query_norm_gain"},
    {"decoder.layers.{}.self_attention.q_layernorm.bias", "layer.{}.query_norm_bias"},
    {"decoder.layers.{}.self_attention.k_layernorm.weight", "layer.{}.key_norm_gain"},
    {"decoder.layers.{}.self_attention.k_layernorm.bias", "layer.{}.key_norm_bias"},
    {"decoder.layers.{}.self_attention.linear_proj.weight", "layer.{}.attention_output"},
    {"decoder.layers.{}.self_attention.linear_proj.bias", "layer.{}.attention_output_bias"},
    {"decoder.layers.{}.pre_mlp_layernorm.weight", "layer.{}.mlp_norm_gain"},
    {"decoder.layers.{}.pre_mlp_layernorm.bias", "layer.{}.mlp_norm_bias"},
    {"decoder.layers.{}.mlp.linear_fc1.layer_norm_weight", "layer.{}.mlp_norm_gain"},
    {"decoder.layers.{}.mlp.linear_fc1.layer_norm_bias", "layer.{}.mlp_norm_bias"},
    {"decoder.layers.{}.mlp.linear_fc1.weight", "layer.{}.mlp_gate layer.{}.mlp_up"},
    {"decoder.layers.{}.mlp.linear_fc1.bias", "layer.{}.mlp_gate_bias layer.{}.mlp_up_bias"},
    {"decoder.layers.{}.mlp.linear_fc2.weight", "layer.{}.mlp_down"},
    {"decoder.layers.{}.mlp.linear_fc2.bias", "layer.{}.mlp_down_bias"},
    {"decoder.final_layernorm.weight", "final_norm_gain"},
    {"decoder.final_layernorm.bias", "final_norm_bias"},
    {"output_layer.weight", "head"},
    {"decoder.layers.{}.self_attention.linear_qkv._extra_state", ""},
    {"decoder.layers.{}.self_attention.linear_proj._extra_state", ""},
    {"decoder.layers.{}.self_attention.core_attention._extra_state", ""},
    {"decoder.layers.{}.mlp.linear_fc1._extra_state", ""},
    {"decoder.layers.{}.mlp.linear_fc2._extra_state", ""},
    {"decoder.final_layernorm._extra_state", ""},
    {"output_layer._extra_state", ""},
};

inline constexpr TensorPattern ngpt_patterns[] = {
    {"transformer.wte.weight", "token_embedding"},
    {"transformer.h.{}.query.weight", "layer.{}.query"},
    {"transformer.h.{}.key.weight", "layer.{}.key"},
    {"transformer.h.{}.value.weight", "layer.{}.value"},
    {"transformer.h.{}.att_c_proj.weight", "layer.{}.attention_output"},
    {"transformer.h.{}.c_fc.weight", "layer.{}.mlp_up layer.{}.mlp_gate"},
    {"transformer.h.{}.mlp_c_proj.weight", "layer.{}.mlp_down"},
    {"transformer.h.{}.attn_alpha", "layer.{}.attention_step"},
    {"transformer.h.{}.mlp_alpha", "layer.{}.mlp_step"},
    {"transformer.h.{}.sqk", "layer.{}.qk_scale"},
    {"transformer.h.{}.suv", "layer.{}.up_scale layer.{}.gate_scale"},
    {"lm_head.weight", "head"},
    {"sz", "logit_scale"},
};

}  // namespace detail

/// Source:   transformers, modeling_gpt_neox.py: [query, key, value] of each head follow each other.
inline constexpr Dialect gpt_neox{"gpt-neox", "Hugging Face GPT-NeoX, Pythia", "",
                                  MatrixLayout::out_in, detail::gpt_neox_patterns};

/// Source:   EleutherAI/gpt-neox ea7aefd8, megatron/model/gpt2_model.py and transformer.py: the numbers of a list of
///           all steps; the rows of each head follow each other where all have keys of their own.
inline constexpr Dialect neox{"neox", "EleutherAI's gpt-neox", "sequential.", MatrixLayout::out_in,
                              detail::neox_patterns};

/// Source:   transformers 5 (c0ce2e4), conversion_mapping.py: embed_out of files is lm_head in memory;
///           detected as gpt-neox, which has both.
inline constexpr Dialect gpt_neox_5{"gpt-neox-5", "Hugging Face GPT-NeoX, transformers 5", "",
                                    MatrixLayout::out_in, detail::gpt_neox_5_patterns};

/// Source:   transformers, modeling_opt.py: positions begin at the third row, so that the table has two more.
inline constexpr Dialect opt{"opt", "Hugging Face OPT", "model.", MatrixLayout::out_in,
                             detail::opt_patterns};

/// Source:   Megatron-LM, megatron/core: for each key head its query heads, the key, the value.
inline constexpr Dialect megatron{"megatron", "Megatron-LM", "", MatrixLayout::out_in,
                                  detail::megatron_patterns};

/// Source:   NVIDIA/ngpt, model.py: c_fc is [u, v] with v the gate.
inline constexpr Dialect ngpt{"ngpt", "nGPT", "", MatrixLayout::out_in, detail::ngpt_patterns};

}  // namespace scalewise::dialect
