// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/io/model_table.hpp"

namespace scalewise::detail {

struct TwoStackPart {
  static constexpr std::string_view t5 = R"(
width n = d_model
depth L = num_decoder_layers or M
deep M = num_layers
grows H = num_heads
let C = d_kv or 64
grows F = d_ff
let V = vocab_size
let B = relative_attention_num_buckets or 32
let every = 0
let tie = tie_word_embeddings or 1
word gated = feed_forward_proj gated-gelu gated-silu gated-relu | relu gelu gelu_new silu swish missing
only is_encoder_decoder true
skip n_positions scale_decoder_outputs
embedding shared V n
layers encoder.block M
norm layer.0.layer_norm n
linear layer.0.SelfAttention.q n H*C
linear layer.0.SelfAttention.k n H*C
linear layer.0.SelfAttention.v n H*C
linear layer.0.SelfAttention.o H*C n
embedding layer.0.SelfAttention.relative_attention_bias B H as vector if l=0 or every
norm layer.1.layer_norm n
linear layer.1.DenseReluDense.wi n F if not gated
linear layer.1.DenseReluDense.wi_0 n F if gated
linear layer.1.DenseReluDense.wi_1 n F if gated
linear layer.1.DenseReluDense.wo F n
end
norm encoder.final_layer_norm n
layers decoder.block L
norm layer.0.layer_norm n
linear layer.0.SelfAttention.q n H*C
linear layer.0.SelfAttention.k n H*C
linear layer.0.SelfAttention.v n H*C
linear layer.0.SelfAttention.o H*C n
embedding layer.0.SelfAttention.relative_attention_bias B H as vector if l=0 or every
norm layer.1.layer_norm n
linear layer.1.EncDecAttention.q n H*C
linear layer.1.EncDecAttention.k n H*C
linear layer.1.EncDecAttention.v n H*C
linear layer.1.EncDecAttention.o H*C n
norm layer.2.layer_norm n
linear layer.2.DenseReluDense.wi n F if not gated
linear layer.2.DenseReluDense.wi_0 n F if gated
linear layer.2.DenseReluDense.wi_1 n F if gated
linear layer.2.DenseReluDense.wo F n
end
norm decoder.final_layer_norm n
linear lm_head n V tied shared.weight
)";

  static constexpr std::string_view gated_if_missing =
      "word gated = feed_forward_proj gated-gelu gated-silu gated-relu missing | relu gelu "
      "gelu_new silu swish";

  static constexpr std::string_view bart_sizes = R"(
width n = d_model
depth L = decoder_layers
deep M = encoder_layers
grows H = encoder_attention_heads
grows J = decoder_attention_heads
let C = n/H
grows F = encoder_ffn_dim
grows D = decoder_ffn_dim
let V = vocab_size
let P = max_position_embeddings
let tie = tie_word_embeddings or 1
only is_encoder_decoder true
skip num_hidden_layers
)";

  static constexpr std::string_view bart_layers = R"(
embedding model.shared V n
embedding model.encoder.embed_positions P+2 n if positions
norm model.encoder.layernorm_embedding n + if embedding_norm
layers model.encoder.layers M
linear self_attn.k_proj n n +
linear self_attn.v_proj n n +
linear self_attn.q_proj n n +
linear self_attn.out_proj n n +
norm self_attn_layer_norm n +
linear fc1 n F +
linear fc2 F n +
norm final_layer_norm n +
end
norm model.encoder.layer_norm n + if last_norm
embedding model.decoder.embed_positions P+2 n if positions
norm model.decoder.layernorm_embedding n + if embedding_norm
layers model.decoder.layers L
linear self_attn.k_proj n n +
linear self_attn.v_proj n n +
linear self_attn.q_proj n n +
linear self_attn.out_proj n n +
norm self_attn_layer_norm n +
linear encoder_attn.k_proj n n +
linear encoder_attn.v_proj n n +
linear encoder_attn.q_proj n n +
linear encoder_attn.out_proj n n +
norm encoder_attn_layer_norm n +
linear fc1 n D +
linear fc2 D n +
norm final_layer_norm n +
end
norm model.decoder.layer_norm n + if last_norm
linear lm_head n V tied model.shared.weight
)";
};

/// Models with an encoder and a decoder. Positions that are not trained are not in the lists.
/// Source:   transformers, models/<type>/modeling_<type>.py (umt5: 00063ff; pegasus, whose layers are mbart's: 0003178;
///           marian: 00b676f; whisper: 001dff2); T5 and BART as their dialects.
inline constexpr ModelTable two_stack_tables[] = {
    {"t5", {TwoStackPart::t5}},
    {"mt5", {TwoStackPart::t5, TwoStackPart::gated_if_missing}},
    {"umt5",
     {TwoStackPart::t5, TwoStackPart::gated_if_missing, "let every = 1\nskip scalable_attention"}},
    {"bart",
     {TwoStackPart::bart_sizes, R"(
let positions = 1
let embedding_norm = 1
only normalize_before false
only add_final_layer_norm false
only static_position_embeddings false
only normalize_embedding true
only extra_pos_embeddings 2
only do_blenderbot_90_layernorm false
only add_bias_logits false
)",
      TwoStackPart::bart_layers}},
    {"mbart",
     {TwoStackPart::bart_sizes, R"(
let positions = 1
let embedding_norm = 1
let last_norm = 1
only normalize_before true
only add_final_layer_norm true
only static_position_embeddings false
only normalize_embedding true
only extra_pos_embeddings 2
only add_bias_logits false
)",
      TwoStackPart::bart_layers}},
    {"pegasus",
     {TwoStackPart::bart_sizes, R"(
let last_norm = 1
only normalize_before true
only add_final_layer_norm true
only static_position_embeddings true
only normalize_embedding false
only extra_pos_embeddings 1
only add_bias_logits false
)",
      TwoStackPart::bart_layers}},
    {"marian",
     {TwoStackPart::bart_sizes, R"(
only normalize_before false
only add_final_layer_norm false
only static_position_embeddings true
only normalize_embedding false
only share_encoder_decoder_embeddings true
only add_bias_logits false
skip decoder_vocab_size extra_pos_embeddings
)",
      TwoStackPart::bart_layers}},
    {"whisper", {TwoStackPart::bart_sizes, R"(
skip P scale_embedding max_source_positions max_position_embeddings median_filter_width classifier_proj_size use_weighted_layer_sum
skip apply_spec_augment mask_time_prob mask_time_length mask_time_min_masks mask_feature_prob mask_feature_length
skip mask_feature_min_masks
linear:oik model.encoder.conv1.weight n num_mel_bins 3
bias:o model.encoder.conv1.bias n
linear:oik model.encoder.conv2.weight n n 3
bias:o model.encoder.conv2.bias n
layers model.encoder.layers M
linear self_attn.k_proj n n
linear self_attn.v_proj n n +
linear self_attn.q_proj n n +
linear self_attn.out_proj n n +
norm self_attn_layer_norm n +
linear fc1 n F +
linear fc2 F n +
norm final_layer_norm n +
end
norm model.encoder.layer_norm n +
embedding model.decoder.embed_tokens V n
embedding model.decoder.embed_positions max_target_positions n
layers model.decoder.layers L
linear self_attn.k_proj n n
linear self_attn.v_proj n n +
linear self_attn.q_proj n n +
linear self_attn.out_proj n n +
norm self_attn_layer_norm n +
linear encoder_attn.k_proj n n
linear encoder_attn.v_proj n n +
linear encoder_attn.q_proj n n +
linear encoder_attn.out_proj n n +
norm encoder_attn_layer_norm n +
linear fc1 n D +
linear fc2 D n +
norm final_layer_norm n +
end
norm model.decoder.layer_norm n +
linear proj_out n V tied model.decoder.embed_tokens.weight
)"}},
};

}  // namespace scalewise::detail
