// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"
#include "scalewise/io/table_parts.hpp"

namespace scalewise::detail {

/// Decoders with one MLP per layer.
/// Source:   transformers, models/<type>/modular_<type>.py or modeling_<type>.py (gemma3: 0033204; cohere: 03ea97a; phi, olmo: 00a98e7;
///           glm, starcoder2: 0325dc4; glm4: 08c5327; stablelm, falcon: 00dcc6d; apertus, exaone4: 008e574; seed_oss:
///           052b1dc; helium: 0911f54; ministral: 05cd1ec; mpt: 0206c7b; nemotron: 001ccfc), and release 5 for GPT-NeoX's head.
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
     {TablePart::rotary, R"(
note embedding_multiplier the code multiplies embeddings by it
note attention_multiplier the code multiplies scores by it, in place of 1/√C
note residual_multiplier the code multiplies each branch by it
note logits_scaling the code divides logits by it
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::end}},
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
let C = head_dim
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
says the code multiplies embeddings by the square root of hidden_size
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
only qk_norm true
only post_norm false
)",
      TablePart::stem, R"(
norm attention_layernorm n
norm feedforward_layernorm n
)",
      TablePart::attention, TablePart::head_norms, R"(
linear mlp.up_proj n F
bias:o mlp.act_fn.alpha_p 1
bias:o mlp.act_fn.alpha_n 1
linear mlp.down_proj F n
)",
      TablePart::end}},
    {"cohere",
     {TablePart::rotary, R"(
let tie = tie_word_embeddings or 1
let mlp_bias = 0
note logit_scale the code multiplies logits by it
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
note logit_scale the code multiplies logits by it
only use_qk_norm false
skip order_of_interleaved_layers position_embedding_type
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
     {TablePart::rotary, TablePart::stem, TablePart::layer_norms_before, TablePart::attention, R"(
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
    {"gptj", {R"(
width n = n_embd or hidden_size
depth L = n_layer or num_hidden_layers
grows H = n_head or num_attention_heads
let C = n/H
grows F = n_inner or 4*n
let V = vocab_size
let tie = tie_word_embeddings or 0
skip n_positions scale_attn_weights
embedding transformer.wte V n
layers transformer.h
norm ln_1 n +
linear attn.k_proj n n
linear attn.v_proj n n
linear attn.q_proj n n
linear attn.out_proj n n
linear mlp.fc_in n F +
linear mlp.fc_out F n +
end
norm transformer.ln_f n +
linear lm_head n V + tied transformer.wte.weight
)"}},
    {"gpt_neox", {TablePart::rotary, R"(
let bias = attention_bias or 1
skip use_parallel_residual
embedding gpt_neox.embed_in V n
layers gpt_neox.layers
norm input_layernorm n +
norm post_attention_layernorm n +
linear attention.query_key_value n 3*n +bias
linear attention.dense n n +bias
linear mlp.dense_h_to_4h n F +
linear mlp.dense_4h_to_h F n +
end
norm gpt_neox.final_layer_norm n +
linear lm_head n V tied gpt_neox.embed_in.weight
)"}},
    {"falcon", {R"(
width n = hidden_size or n_embed
depth L = num_hidden_layers or n_layer
grows H = num_attention_heads or n_head
keys K = num_kv_heads or n_head_kv or H
let C = n/H
grows F = ffn_hidden_size or 4*n
let V = vocab_size
let tie = tie_word_embeddings or 1
let new = new_decoder_architecture or 0
let one = multi_query or 1
let parallel = parallel_attn or 1
let norms = num_ln_in_parallel_attn or 2
skip alibi apply_residual_connection_post_layernorm activation
embedding transformer.word_embeddings V n
layers transformer.h
norm ln_attn n + if new and norms=2
norm ln_mlp n + if new and norms=2
norm input_layernorm n + if not (new and norms=2)
norm post_attention_layernorm n + if not new and not parallel
linear self_attention.query_key_value n (H+2*K)*C +bias if new
linear self_attention.query_key_value n n+2*C +bias if not new and one
linear self_attention.query_key_value n 3*n +bias if not new and not one
linear self_attention.dense n n +bias
linear mlp.dense_h_to_4h n F +bias
linear mlp.dense_4h_to_h F n +bias
end
norm transformer.ln_f n +
linear lm_head n V tied transformer.word_embeddings.weight
)"}},
    {"bloom", {R"(
width n = hidden_size or n_embed
depth L = n_layer or num_hidden_layers
grows H = n_head or num_attention_heads
let C = n/H
let V = vocab_size
let tie = tie_word_embeddings or 1
only apply_residual_connection_post_layernorm false
skip slow_but_exact masked_softmax_fusion bias_dropout_fusion offset_alibi skip_bias_add skip_bias_add_qkv
embedding transformer.word_embeddings V n
norm transformer.word_embeddings_layernorm n +
layers transformer.h
norm input_layernorm n +
linear self_attention.query_key_value n 3*n +
linear self_attention.dense n n +
norm post_attention_layernorm n +
linear mlp.dense_h_to_4h n 4*n +
linear mlp.dense_4h_to_h 4*n n +
end
norm transformer.ln_f n +
linear lm_head n V tied transformer.word_embeddings.weight
)"}},
    {"mpt", {R"(
width n = d_model or hidden_size
depth L = n_layers or num_hidden_layers
grows H = n_heads or num_attention_heads
let C = n/H
let V = vocab_size
let tie = tie_word_embeddings or 1
only expansion_ratio 4
only no_bias true
note logit_scale the code multiplies logits by it
skip attn_config max_seq_len init_config learned_pos_emb verbose norm_type
embedding transformer.wte V n
layers transformer.blocks
norm norm_1 n
linear attn.Wqkv n 3*n
linear attn.out_proj n n
norm norm_2 n
linear ffn.up_proj n 4*n
linear ffn.down_proj 4*n n
end
norm transformer.norm_f n
linear lm_head n V tied transformer.wte.weight
)"}},
};

}  // namespace scalewise::detail
