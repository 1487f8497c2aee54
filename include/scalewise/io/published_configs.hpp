// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>

namespace scalewise::io {

/// The configuration of a published model that no Shape describes: of its config.json the keys that its tensors depend on,
/// and what its code multiplies. Keys that are left out have the defaults of their class.
struct PublishedConfig {
  std::string_view id;
  std::string_view json;
};

// clang-format off
inline constexpr auto published_configs = std::to_array<PublishedConfig>({
    {"mixtral-8x7b", R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "num_local_experts":
        8, "vocab_size": 32000, "tie_word_embeddings": false})"},
    {"qwen3-30b-a3b", R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144,
        "moe_intermediate_size": 768, "num_experts": 128, "vocab_size": 151936, "decoder_sparse_step": 1,
        "tie_word_embeddings": false, "attention_bias": false})"},
    {"olmoe-1b-7b", R"({"model_type": "olmoe", "hidden_size": 2048, "num_hidden_layers": 16,
        "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 1024, "num_experts": 64,
        "vocab_size": 50304, "attention_bias": false, "tie_word_embeddings": false})"},
    {"gpt-oss-20b", R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_hidden_layers": 24,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880,
        "num_local_experts": 32, "vocab_size": 201088, "attention_bias": true, "tie_word_embeddings": false})"},
    {"deepseek-v2-lite", R"({"model_type": "deepseek_v2", "hidden_size": 2048, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "first_k_dense_replace":
        1, "moe_layer_freq": 1, "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 102400, "attention_bias": false, "routed_scaling_factor": 1.0,
        "tie_word_embeddings": false})"},
    {"phi-3.5-moe", R"({"model_type": "phimoe", "hidden_size": 4096, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 6400, "num_local_experts":
        16, "vocab_size": 32064, "attention_bias": true, "lm_head_bias": true, "tie_word_embeddings": false})"},
    {"qwen2-57b-a14b", R"({"model_type": "qwen2_moe", "hidden_size": 3584, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
        "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480, "num_experts": 64,
        "vocab_size": 151936, "decoder_sparse_step": 1, "tie_word_embeddings": false})"},
    {"gemma-2-2b", R"({"model_type": "gemma2", "attention_bias": false, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_size": 2304, "intermediate_size": 9216,
        "num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar":
        256, "vocab_size": 256000})"},
    {"gemma-2-9b", R"({"model_type": "gemma2", "attention_bias": false, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0, "head_dim": 256, "hidden_size": 3584, "intermediate_size": 14336,
        "num_attention_heads": 16, "num_hidden_layers": 42, "num_key_value_heads": 8, "query_pre_attn_scalar":
        256, "vocab_size": 256000})"},
    {"gemma-2-27b", R"({"model_type": "gemma2", "hidden_size": 4608, "num_hidden_layers": 46,
        "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 36864,
        "vocab_size": 256000, "query_pre_attn_scalar": 144, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0})"},
    {"gemma-3-1b", R"({"model_type": "gemma3_text", "attention_bias": false, "head_dim": 256, "hidden_size":
        1152, "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26,
        "num_key_value_heads": 1, "query_pre_attn_scalar": 256, "vocab_size": 262144})"},
    {"gemma-3-4b", R"({"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
        "intermediate_size": 10240})"},
    {"gpt-j-6b", R"({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "tie_word_embeddings":
        false, "vocab_size": 50400})"},
    {"falcon-40b", R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
        "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024, "alibi": false, "bias": false,
        "multi_query": true, "new_decoder_architecture": true, "parallel_attn": true})"},
    {"command-r", R"({"model_type": "cohere", "hidden_size": 8192, "num_hidden_layers": 40,
        "num_attention_heads": 64, "num_key_value_heads": 64, "intermediate_size": 22528, "vocab_size": 256000,
        "logit_scale": 0.0625, "use_qk_norm": false, "attention_bias": false, "tie_word_embeddings": true})"},
});
// clang-format on

/// A published configuration by its id; null where there is none of that name.
constexpr const PublishedConfig* published_config(std::string_view id) {
  for (const PublishedConfig& config : published_configs) {
    if (config.id == id) return &config;
  }
  return nullptr;
}

}  // namespace scalewise::io
