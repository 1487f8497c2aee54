// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"
#include "scalewise/io/table_parts.hpp"

namespace scalewise::detail {

/// Queries, keys and values through a latent space, whose width does not grow with the model's, as in the published sizes.
inline constexpr std::string_view latent_sizes = R"(
let Q = q_lora_rank or null 0
let R = kv_lora_rank
let rope = qk_rope_head_dim
let nope = qk_nope_head_dim
let C = nope+rope
let D = v_head_dim
grows G = moe_intermediate_size
let E = n_routed_experts or num_experts or num_local_experts
let shared = n_shared_experts or null 0
let dense = first_k_dense_replace or 0
layer sparse = l>=dense
skip K num_key_value_heads head_dim qk_head_dim n_group topk_group topk_method scoring_func
skip ep_size aux_loss_alpha seq_aux num_nextn_predict_layers 
only moe_layer_freq 1
note routed_scaling_factor the code multiplies what the experts give by it
)";

inline constexpr std::string_view latent_attention = R"(
linear self_attn.q_proj n H*C if Q=0
linear self_attn.q_a_proj n Q +qkv_bias as hidden if Q>0
norm self_attn.q_a_layernorm Q if Q>0
linear self_attn.q_b_proj Q H*C as hidden if Q>0
linear self_attn.kv_a_proj_with_mqa n R+rope +qkv_bias as hidden
norm self_attn.kv_a_layernorm R
linear self_attn.kv_b_proj R H*(nope+D) as hidden
linear self_attn.o_proj H*D n +o_bias
)";

inline constexpr std::string_view shared_experts = R"(
linear mlp.shared_experts.gate_proj n shared*G if sparse and shared>0
linear mlp.shared_experts.up_proj n shared*G if sparse and shared>0
linear mlp.shared_experts.down_proj shared*G n if sparse and shared>0
end
norm model.norm n
linear lm_head n V tied model.embed_tokens.weight
)";

/// Mixtures of experts: E experts side by side in one tensor, as transformers 5 keeps them in memory.
/// Source:   transformers 5, models/<type>/modular_<type>.py (mixtral, deepseek: 000c33f; qwen2_moe: 001f85b; qwen3_moe: 00eb116;
///           olmoe: 052b1dc; granitemoe: c0ce2e4; glm4_moe: 008c726; gpt_oss: 0261a46; phimoe: 0233e50) and conversion_mapping.py (000c33f) for what files have.
inline constexpr ModelTable expert_tables[] = {
    {"mixtral",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let E = num_local_experts or num_experts
grows G = intermediate_size
let qkv_bias = 0
let sparse = 1
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::experts,
      TablePart::end}},
    {"qwen2_moe",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
grows G = moe_intermediate_size
grows S = shared_expert_intermediate_size
let E = num_experts or num_local_experts
let step = decoder_sparse_step or 1
layer sparse = not (l in mlp_only_layers) and (l+1)%step=0
let qkv_bias = qkv_bias or 1
let o_bias = 0
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::gated_mlp,
      TablePart::experts, R"(
linear mlp.shared_expert.gate_proj n S if sparse
linear mlp.shared_expert.up_proj n S if sparse
linear mlp.shared_expert.down_proj S n if sparse
linear mlp.shared_expert_gate n 1 if sparse
end
norm model.norm n
linear lm_head n V tied model.embed_tokens.weight
)"}},
    {"qwen3_moe",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
grows G = moe_intermediate_size
let E = num_experts or num_local_experts
let step = decoder_sparse_step or 1
layer sparse = not (l in mlp_only_layers) and (l+1)%step=0
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::head_norms,
      TablePart::gated_mlp, TablePart::experts, TablePart::end}},
    {"olmoe",
     {TablePart::rotary, R"(
let E = num_experts or num_local_experts
grows G = intermediate_size
let sparse = 1
note clip_qkv the code clips queries, keys and values at it
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, TablePart::full_norms,
      TablePart::experts, TablePart::end}},
    {"gpt_oss",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H or 8
let C = head_dim or null n/H or 64
let E = num_local_experts or num_experts
let qkv_bias = attention_bias or 1
skip experts_per_token initial_context_length
note swiglu_limit the code clips what the experts' gates get at it
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, R"(
bias:o self_attn.sinks H
linear mlp.router n E +
linear:eio mlp.experts.gate_up_proj E n 2*F
bias:eo mlp.experts.gate_up_proj_bias E 2*F
linear:eio mlp.experts.down_proj E F n
bias:eo mlp.experts.down_proj_bias E n
)",
      TablePart::end}},
    {"deepseek_v2",
     {TablePart::rotary, latent_sizes, R"(
note rope_scaling.mscale_all_dim the authors' code multiplies scores by (0.1*it*ln(factor)+1)^2, that of transformers does not
)",
      TablePart::stem, TablePart::norms_before, latent_attention, TablePart::gated_mlp,
      TablePart::experts, shared_experts}},
    {"deepseek_v3",
     {TablePart::rotary, latent_sizes, "let dense = first_k_dense_replace or 3", TablePart::stem,
      TablePart::norms_before, latent_attention, TablePart::gated_mlp, TablePart::experts,
      shared_experts}},
    {"phimoe",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let E = num_local_experts
)",
      TablePart::stem, TablePart::layer_norms_before, TablePart::attention, R"(
linear mlp.router n E
linear:eoi mlp.experts.gate_up_proj E 2*F n
linear:eoi mlp.experts.down_proj E n F
end
norm model.norm n +
linear lm_head n V +lm_head_bias tied model.embed_tokens.weight
)"}},
    {"granitemoe",
     {TablePart::rotary, R"(
let E = num_local_experts
let mlp_bias = 0
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, R"(
linear block_sparse_moe.router n E
linear:eoi block_sparse_moe.experts.gate_up_proj E 2*F n
linear:eoi block_sparse_moe.experts.down_proj E n F
)",
      TablePart::end}},
    {"glm4_moe",
     {TablePart::rotary, R"(
keys K = num_key_value_heads or null H
let C = head_dim
let o_bias = 0
grows G = moe_intermediate_size
let E = n_routed_experts or num_local_experts
let shared = n_shared_experts
let dense = first_k_dense_replace or 1
layer sparse = l>=dense
skip n_group topk_group num_nextn_predict_layers
note routed_scaling_factor the code multiplies what the experts give by it
)",
      TablePart::stem, TablePart::norms_before, TablePart::attention, R"(
norm self_attn.q_norm C if use_qk_norm
norm self_attn.k_norm C if use_qk_norm
)",
      TablePart::gated_mlp, TablePart::experts, shared_experts}},
};

}  // namespace scalewise::detail
