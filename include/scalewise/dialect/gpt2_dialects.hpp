// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dialect/dialect.hpp"

namespace scalewise::dialect {

namespace detail {

inline constexpr TensorPattern gpt2_patterns[] = {
    {"transformer.wte.weight", "token_embedding"},
    {"transformer.wpe.weight", "position_embedding"},
    {"transformer.h.{}.ln_1.weight", "layer.{}.attention_norm_gain"},
    {"transformer.h.{}.ln_1.bias", "layer.{}.attention_norm_bias"},
    {"transformer.h.{}.attn.c_attn.weight", "layer.{}.query layer.{}.key layer.{}.value"},
    {"transformer.h.{}.attn.c_attn.bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"transformer.h.{}.attn.c_proj.weight", "layer.{}.attention_output"},
    {"transformer.h.{}.attn.c_proj.bias", "layer.{}.attention_output_bias"},
    {"transformer.h.{}.ln_2.weight", "layer.{}.mlp_norm_gain"},
    {"transformer.h.{}.ln_2.bias", "layer.{}.mlp_norm_bias"},
    {"transformer.h.{}.mlp.c_fc.weight", "layer.{}.mlp_up"},
    {"transformer.h.{}.mlp.c_fc.bias", "layer.{}.mlp_up_bias"},
    {"transformer.h.{}.mlp.c_proj.weight", "layer.{}.mlp_down"},
    {"transformer.h.{}.mlp.c_proj.bias", "layer.{}.mlp_down_bias"},
    {"transformer.ln_f.weight", "final_norm_gain"},
    {"transformer.ln_f.bias", "final_norm_bias"},
    {"lm_head.weight", "head"},
    {"transformer.h.{}.attn.bias", ""},
    {"transformer.h.{}.attn.masked_bias", ""},
};

inline constexpr TensorPattern llm_c_patterns[] = {
    {"wte", "token_embedding"},
    {"wpe", "position_embedding"},
    {"wlmhead", "head"},
    {"ln1w", "layer.{}.attention_norm_gain"},
    {"ln1b", "layer.{}.attention_norm_bias"},
    {"qkvw", "layer.{}.query layer.{}.key layer.{}.value"},
    {"qkvb", "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"attprojw", "layer.{}.attention_output"},
    {"attprojb", "layer.{}.attention_output_bias"},
    {"ln2w", "layer.{}.mlp_norm_gain"},
    {"ln2b", "layer.{}.mlp_norm_bias"},
    {"fcw", "layer.{}.mlp_gate layer.{}.mlp_up"},
    {"fcb", "layer.{}.mlp_gate_bias layer.{}.mlp_up_bias"},
    {"fcprojw", "layer.{}.mlp_down"},
    {"fcprojb", "layer.{}.mlp_down_bias"},
    {"lnfw", "final_norm_gain"},
    {"lnfb", "final_norm_bias"},
};

inline constexpr TensorPattern gguf_gpt2_patterns[] = {
    {"token_embd.weight", "token_embedding"},
    {"position_embd.weight", "position_embedding"},
    {"blk.{}.attn_norm.weight", "layer.{}.attention_norm_gain"},
    {"blk.{}.attn_norm.bias", "layer.{}.attention_norm_bias"},
    {"blk.{}.attn_qkv.weight", "layer.{}.query layer.{}.key layer.{}.value"},
    {"blk.{}.attn_qkv.bias", "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"blk.{}.attn_output.weight", "layer.{}.attention_output"},
    {"blk.{}.attn_output.bias", "layer.{}.attention_output_bias"},
    {"blk.{}.ffn_norm.weight", "layer.{}.mlp_norm_gain"},
    {"blk.{}.ffn_norm.bias", "layer.{}.mlp_norm_bias"},
    {"blk.{}.ffn_up.weight", "layer.{}.mlp_up"},
    {"blk.{}.ffn_up.bias", "layer.{}.mlp_up_bias"},
    {"blk.{}.ffn_down.weight", "layer.{}.mlp_down"},
    {"blk.{}.ffn_down.bias", "layer.{}.mlp_down_bias"},
    {"output_norm.weight", "final_norm_gain"},
    {"output_norm.bias", "final_norm_bias"},
    {"output.weight", "head"},
};

inline constexpr TensorPattern ggml_gpt2_patterns[] = {
    {"model/wte", "token_embedding"},
    {"model/wpe", "position_embedding"},
    {"model/h{}/ln_1/g", "layer.{}.attention_norm_gain"},
    {"model/h{}/ln_1/b", "layer.{}.attention_norm_bias"},
    {"model/h{}/attn/c_attn/w", "layer.{}.query layer.{}.key layer.{}.value"},
    {"model/h{}/attn/c_attn/b", "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"model/h{}/attn/c_proj/w", "layer.{}.attention_output"},
    {"model/h{}/attn/c_proj/b", "layer.{}.attention_output_bias"},
    {"model/h{}/ln_2/g", "layer.{}.mlp_norm_gain"},
    {"model/h{}/ln_2/b", "layer.{}.mlp_norm_bias"},
    {"model/h{}/mlp/c_fc/w", "layer.{}.mlp_up"},
    {"model/h{}/mlp/c_fc/b", "layer.{}.mlp_up_bias"},
    {"model/h{}/mlp/c_proj/w", "layer.{}.mlp_down"},
    {"model/h{}/mlp/c_proj/b", "layer.{}.mlp_down_bias"},
    {"model/ln_f/g", "final_norm_gain"},
    {"model/ln_f/b", "final_norm_bias"},
    {"model/lm_head", "head"},
};

}  // namespace detail

/// Source:   transformers, modeling_gpt2.py: Conv1D has inputs first.
inline constexpr Dialect hf_gpt2{"hf-gpt2", "Hugging Face GPT-2 (Conv1D)", "transformer.",
                                 MatrixLayout::in_out, detail::gpt2_patterns};

/// Source:   nanoGPT, model.py; train_gpt2.py of llm.c has the same names.
inline constexpr Dialect nanogpt{"nanogpt", "nanoGPT (Linear)", "transformer.",
                                 MatrixLayout::out_in, detail::gpt2_patterns};

/// Source:   llm.c, train_gpt2.c and train_llama3.cu: 16 slabs, each of all layers.
inline constexpr Dialect llm_c{"llm-c", "llm.c", "", MatrixLayout::out_in, detail::llm_c_patterns};

/// Source:   gguf-py, constants.py.
inline constexpr Dialect gguf_gpt2{"gguf-gpt2", "GGUF of GPT-2", "", MatrixLayout::out_in,
                                   detail::gguf_gpt2_patterns};

/// Source:   ggml, examples/gpt-2.
inline constexpr Dialect ggml_gpt2{"ggml-gpt2", "ggml's GPT-2 example", "", MatrixLayout::out_in,
                                   detail::ggml_gpt2_patterns};

}  // namespace scalewise::dialect
