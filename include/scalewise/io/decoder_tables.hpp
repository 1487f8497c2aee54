// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"
#include "scalewise/io/table_parts.hpp"

namespace scalewise::detail {

/// Decoders after LLaMA: rotary positions, one MLP in each layer.
/// Source:   transformers, models/<type>/modular_<type>.py or modeling_<type>.py (gemma3: 0033204; cohere: 03ea97a; phi, olmo:
///           00a98e7; glm, starcoder2: 0325dc4; glm4: 08c5327; stablelm: 00dcc6d; apertus, cohere2, exaone4, smollm3:
///           008e574; olmo3: 02e8340; seed_oss: 052b1dc; helium: 0911f54; ministral: 05cd1ec; nemotron: 001ccfc).
inline constexpr ModelTable decoder_tables[] = {
    {"llama",
     {TablePart::rotary, TablePart::stem, TablePart::norms_before, TablePart::attention,
      TablePart::gated_mlp, TablePart::end}},
    {"mistral",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H or 8
let qkv_bias = 0
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"ministral",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let qkv_bias = 0
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"qwen2",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H or 32
let qkv_bias = 1
let o_bias = 0
let mlp_bias = 0
only qkv_bias true
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"qwen3",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H or 32
let C = head_dim or 128
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::head_norms,
      TablePart::gated_mlp, TablePart::end}},
    {"olmo2",
     {TablePart::rotary, "let mlp_bias = 0", TablePart::stem, TablePart::attention,
      TablePart::full_norms, TablePart::gated_mlp, TablePart::norms_after, TablePart::end}},
    {"olmo3",
     {TablePart::rotary, "let mlp_bias = 0", TablePart::stem, TablePart::attention,
      TablePart::full_norms, TablePart::gated_mlp, TablePart::norms_after, TablePart::end}},
    {"olmo",
     {TablePart::rotary, R"(
let mlp_bias = 0
note clip_qkv the code clips queries, keys and values at it
)",
      TablePart::stem, TablePart::attention, TablePart::gated_mlp, R"(
end
linear lm_head n V tied model.embed_tokens.weight
)"}},
    {"granite",
     {TablePart::rotary, TablePart::stem, TablePart::norms_before, TablePart::attention,
      TablePart::gated_mlp, TablePart::end}},
    {"smollm3",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let tie = tie_word_embeddings or 1
skip no_rope_layers no_rope_layer_interval
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"seed_oss",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = head_dim or null n/H
let qkv_bias = attention_bias or 1
let o_bias = attention_out_bias or 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"helium",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = head_dim
let o_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"exaone4",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let qkv_bias = 0
let mlp_bias = 0
)",
      TablePart::stem, TablePart::attention, TablePart::head_norms, TablePart::gated_mlp,
      TablePart::norms_after, TablePart::end}},
    {"gemma",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H or 16
let C = head_dim or 256
let tie = tie_word_embeddings or 1
let mlp_bias = 0
says the code's norms multiply by 1 + weight: subtract 1 from the means of gains, as apply() does
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
    {"gemma2",
     {TablePart::rotary, TablePart::gemma, TablePart::stem, TablePart::four_norms,
      TablePart::attention, TablePart::gated_mlp, TablePart::end}},
    {"gemma3_text",
     {TablePart::rotary, TablePart::gemma, R"(
grows H = num_attention_heads or 8
keys K = num_key_value_heads or null H or 4
let V = vocab_size or 262208
skip use_bidirectional_attention
)",
      TablePart::stem, TablePart::four_norms, TablePart::attention, TablePart::head_norms,
      TablePart::gated_mlp, TablePart::end}},
    {"phi3",
     {TablePart::rotary, R"(
only attention_bias false
only lm_head_bias false
)",
      TablePart::stem, TablePart::norms_before, R"(
linear self_attn.qkv_proj n (H+2*K)*C
linear self_attn.o_proj H*C n
)",
      TablePart::fused_mlp, TablePart::end}},
    {"glm",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = head_dim
let o_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::fused_mlp,
      TablePart::end}},
    {"glm4",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = head_dim
let o_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, R"(
norm post_self_attn_layernorm n
norm post_mlp_layernorm n
)",
      TablePart::fused_mlp, TablePart::end}},
    {"apertus",
     {TablePart::rotary, R"(
let mlp_bias = 0
word xielu = hidden_act xielu missing
only qk_norm true
only post_norm false
)",
      TablePart::stem, R"(
norm attention_layernorm n
norm feedforward_layernorm n
)",
      TablePart::attention, TablePart::head_norms, R"(
linear mlp.up_proj n F
other:o mlp.act_fn.alpha_p 1 if xielu
other:o mlp.act_fn.alpha_n 1 if xielu
linear mlp.down_proj F n
)",
      TablePart::end}},
    {"cohere",
     {TablePart::rotary, R"(
let tie = tie_word_embeddings or 1
let mlp_bias = 0
)",
      TablePart::stem, R"(
norm input_layernorm n
)",
      TablePart::attention, R"(
gain:oo self_attn.q_norm.weight H C if use_qk_norm
gain:oo self_attn.k_norm.weight K C if use_qk_norm
)",
      TablePart::gated_mlp, TablePart::end}},
    {"cohere2",
     {TablePart::rotary, R"(
let tie = tie_word_embeddings or 1
let mlp_bias = 0
only use_qk_norm false
only use_embedding_sharing true
only use_gated_activation true
only use_parallel_block true
skip order_of_interleaved_layers position_embedding_type layer_switch use_parallel_embedding
)",
      TablePart::stem, R"(
norm input_layernorm n
)",
      TablePart::attention, TablePart::gated_mlp, TablePart::end}},
    {"stablelm",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = n/H
let qkv_bias = use_qkv_bias or 0
let o_bias = 0
let mlp_bias = 0
only qk_layernorm false
)",
      TablePart::stem, R"(
norm input_layernorm n +
norm post_attention_layernorm n + if not use_parallel_residual
)",
      TablePart::attention, TablePart::gated_mlp, TablePart::layer_norm_end}},
    {"starcoder2",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let qkv_bias = use_bias or 1
let o_bias = use_bias or 1
let tie = tie_word_embeddings or 1
only norm_type "layer_norm"
only mlp_type "default"
skip attention_bias scale_attn_weights
)",
      TablePart::stem, TablePart::layer_norms_before, TablePart::attention, R"(
linear mlp.c_fc n F +qkv_bias
linear mlp.c_proj F n +qkv_bias
)",
      TablePart::layer_norm_end}},
    {"nemotron",
     {TablePart::rotary, R"(
skip kv_channels
says the code's norms multiply by 1 + weight: subtract 1 from the means of gains, as apply() does
)",
      TablePart::stem, TablePart::layer_norms_before, TablePart::attention, R"(
linear mlp.up_proj n F +mlp_bias
linear mlp.down_proj F n +mlp_bias
)",
      TablePart::layer_norm_end}},
    {"phi", {TablePart::rotary, TablePart::stem, R"(
norm input_layernorm n +
linear self_attn.q_proj n H*C +
linear self_attn.k_proj n K*C +
linear self_attn.v_proj n K*C +
linear self_attn.dense H*C n +
norm self_attn.q_layernorm C + if qk_layernorm
norm self_attn.k_layernorm C + if qk_layernorm
linear mlp.fc1 n F +
linear mlp.fc2 F n +
end
norm model.final_layernorm n +
linear lm_head n V + tied model.embed_tokens.weight
)"}},
};

}  // namespace scalewise::detail
