// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"
#include "scalewise/io/table_parts.hpp"

namespace scalewise::detail {

/// Decoders before LLaMA.
/// Source:   transformers, models/<type>/modeling_<type>.py (gptj: 00b676f; falcon: 00dcc6d; bloom: 0078a6c; mpt: 4352620),
///           and release 5 (c0ce2e4) for the name of GPT-NeoX's head.
inline constexpr ModelTable gpt_tables[] = {
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
let norms = num_ln_in_parallel_attn or 2*new
skip alibi apply_residual_connection_post_layernorm activation
embedding transformer.word_embeddings V n
layers transformer.h
norm ln_attn n + if parallel and norms=2
norm ln_mlp n + if parallel and norms=2
norm input_layernorm n + if not (parallel and norms=2)
norm post_attention_layernorm n + if not parallel
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
only embedding_fraction 1
only attn_config.attn_type "multihead_attention"
only attn_config.qk_ln false
only attn_config.alibi true
note logit_scale the code of transformers does not multiply logits by it, as the authors' does
note attn_config.clip_qkv the code clips queries, keys and values at it
skip attn_config.attn_impl attn_config.alibi_bias_max attn_config.attn_uses_sequence_id attn_config.prefix_lm
skip max_seq_len init_config init_device learned_pos_emb verbose norm_type
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
    {"gpt2", {R"(
width n = n_embd
depth L = n_layer
grows H = n_head
let C = n/H
grows F = n_inner or 4*n
let V = vocab_size
let tie = tie_word_embeddings or 1
only add_cross_attention false
only scale_attn_by_inverse_layer_idx false
embedding transformer.wte V n
embedding transformer.wpe n_positions n
layers transformer.h
norm ln_1 n +
conv1d attn.c_attn n 3*n +
conv1d attn.c_proj n n +
norm ln_2 n +
conv1d mlp.c_fc n F +
conv1d mlp.c_proj F n +
end
norm transformer.ln_f n +
linear lm_head n V tied transformer.wte.weight
)"}},
    {"gpt_neo", {R"(
width n = hidden_size
depth L = num_layers
grows H = num_heads
let C = n/H
grows F = intermediate_size or 4*n
let V = vocab_size
let tie = tie_word_embeddings or 1
skip attention_types attention_layers window_size
embedding transformer.wte V n
embedding transformer.wpe max_position_embeddings n
layers transformer.h
norm ln_1 n +
linear attn.attention.k_proj n n
linear attn.attention.v_proj n n
linear attn.attention.q_proj n n
linear attn.attention.out_proj n n +
norm ln_2 n +
linear mlp.c_fc n F +
linear mlp.c_proj F n +
end
norm transformer.ln_f n +
linear lm_head n V tied transformer.wte.weight
)"}},
    {"opt", {R"(
width n = hidden_size
depth L = num_hidden_layers
grows H = num_attention_heads
let C = n/H
grows F = ffn_dim
grows w = word_embed_proj_dim or n
let P = max_position_embeddings
let V = vocab_size
let tie = tie_word_embeddings or 1
let bias = enable_bias or 1
let gains = layer_norm_elementwise_affine or 1
let before = do_layer_norm_before or 1
embedding model.decoder.embed_tokens V w
embedding model.decoder.embed_positions P+2 n
linear model.decoder.project_out n w if not w=n
linear model.decoder.project_in w n if not w=n
layers model.decoder.layers
linear self_attn.k_proj n n +bias
linear self_attn.v_proj n n +bias
linear self_attn.q_proj n n +bias
linear self_attn.out_proj n n +bias
norm self_attn_layer_norm n + if gains
linear fc1 n F +bias
linear fc2 F n +bias
norm final_layer_norm n + if gains
end
norm model.decoder.final_layer_norm n + if gains and before and not _remove_final_layer_norm
linear lm_head w V tied model.decoder.embed_tokens.weight
)"}},
};

}  // namespace scalewise::detail
