// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Relatives of LLaMA with biases on some matrices, or with norms of queries and keys. Read in:
// transformers modeling_{qwen2,qwen3,olmo2}.py.

#pragma once

#include <string>

#include "support/published/llama.hpp"

namespace scalewise::test::published {

/// Biases on queries, keys and values alone.
inline Model qwen2(Shape shape, const std::string& title = "small") {
  shape.attention_biases = AttentionBiases::qkv;
  return detail::hf_llama_model("qwen2", title, shape, {.query_key_value_biases = true});
}

/// One gain for all heads' queries, one for all keys.
inline Model qwen3(Shape shape, const std::string& title = "small") {
  shape.qk_norm = QkNorm::head;
  const Shape s = resolved(shape);
  return detail::hf_llama_model("qwen3", title, shape,
                                {.query_norm = s.head_dim, .key_norm = s.head_dim});
}

/// Norms after the blocks, of which one has the name of LLaMA's before the MLP.
inline Model olmo2(Shape shape, const std::string& title = "small") {
  shape.qk_norm = QkNorm::full;
  const Shape s = resolved(shape);
  return detail::hf_llama_model("olmo2", title, shape,
                                {.query_norm = s.heads * s.head_dim,
                                 .key_norm = s.kv_heads * s.head_dim,
                                 .attention_norm = "post_attention_layernorm",
                                 .mlp_norm = "post_feedforward_layernorm"});
}

/// LLaMA's attention_bias = true with mlp_bias = false.
inline Model hf_llama_with_attention_biases(Shape shape, const std::string& title = "small") {
  shape.attention_biases = AttentionBiases::all;
  return detail::hf_llama_model("hf-llama", title + ", attention_bias", shape,
                                {.query_key_value_biases = true, .output_bias = true});
}

}  // namespace scalewise::test::published
