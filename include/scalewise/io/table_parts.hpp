// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace scalewise::detail {

/// Lines that tables of several families have; model_table.hpp says what they mean.
struct TablePart {
  /// Sizes of decoders with grouped keys and rotary positions, and their flags where none is given.
  static constexpr std::string_view rotary = R"(
width n = hidden_size
depth L = num_hidden_layers
grows H = num_attention_heads
keys K = num_key_value_heads or H
let C = head_dim or n/H
grows F = intermediate_size
let V = vocab_size
let tie = tie_word_embeddings or 0
let qkv_bias = attention_bias or 0
let o_bias = qkv_bias
let mlp_bias = mlp_bias or 0
let sparse = 0
)";

  static constexpr std::string_view stem = R"(
embedding model.embed_tokens V n
layers model.layers
)";

  static constexpr std::string_view attention = R"(
linear self_attn.q_proj n H*C +qkv_bias
linear self_attn.k_proj n K*C +qkv_bias as hidden
linear self_attn.v_proj n K*C +qkv_bias as hidden
linear self_attn.o_proj H*C n +o_bias
)";

  static constexpr std::string_view head_norms = R"(
norm self_attn.q_norm C
norm self_attn.k_norm C
)";

  static constexpr std::string_view full_norms = R"(
norm self_attn.q_norm H*C
norm self_attn.k_norm K*C
)";

  static constexpr std::string_view gated_mlp = R"(
linear mlp.gate_proj n F +mlp_bias if not sparse
linear mlp.up_proj n F +mlp_bias if not sparse
linear mlp.down_proj F n +mlp_bias if not sparse
)";

  /// E experts of G rows side by side.
  static constexpr std::string_view experts = R"(
linear mlp.gate n E if sparse
linear:eoi mlp.experts.gate_up_proj E 2*G n if sparse
linear:eoi mlp.experts.down_proj E n G if sparse
)";

  static constexpr std::string_view norms_before = R"(
norm input_layernorm n
norm post_attention_layernorm n
)";

  static constexpr std::string_view norms_after = R"(
norm post_attention_layernorm n
norm post_feedforward_layernorm n
)";

  static constexpr std::string_view end = R"(
end
norm model.norm n
linear lm_head n V tied model.embed_tokens.weight
)";

  /// Norms before both blocks, with biases: LayerNorm.
  static constexpr std::string_view layer_norms_before = R"(
norm input_layernorm n +
norm post_attention_layernorm n +
)";

  static constexpr std::string_view layer_norm_end = R"(
end
norm model.norm n +
linear lm_head n V tied model.embed_tokens.weight
)";

  static constexpr std::string_view four_norms = R"(
norm input_layernorm n
norm post_attention_layernorm n
norm pre_feedforward_layernorm n
norm post_feedforward_layernorm n
)";

  static constexpr std::string_view fused_mlp = R"(
linear mlp.gate_up_proj n 2*F
linear mlp.down_proj F n
)";

  /// Caps and fixed choices of Gemma 2 and 3.
  static constexpr std::string_view gemma = R"(
keys K = num_key_value_heads or null H
let C = head_dim or 256
let tie = tie_word_embeddings or 1
let mlp_bias = 0
says the code's norms multiply by 1 + weight: subtract 1 from the means of gains, as apply() does
note attn_logit_softcapping the code caps scores at it
note final_logit_softcapping the code caps logits at it
)";

  static constexpr std::string_view bert_sizes = R"(
width n = hidden_size
depth L = num_hidden_layers
grows H = num_attention_heads
let C = n/H
grows F = intermediate_size
let V = vocab_size
let types = type_vocab_size or 2
let tie = tie_word_embeddings or 1
only add_cross_attention false
only position_embedding_type "absolute"
)";

  static constexpr std::string_view bert_outputs = R"(
linear attention.output.dense n n +
norm attention.output.LayerNorm n +
linear intermediate.dense n F +
linear output.dense F n +
norm output.LayerNorm n +
)";

  static constexpr std::string_view bert_attention = R"(
linear attention.self.query n n +
linear attention.self.key n n +
linear attention.self.value n n +
)";

  static constexpr std::string_view roberta_stem = R"(
embedding roberta.embeddings.word_embeddings V n
embedding roberta.embeddings.position_embeddings max_position_embeddings n
embedding roberta.embeddings.token_type_embeddings types n
norm roberta.embeddings.LayerNorm n +
layers roberta.encoder.layer
)";

  static constexpr std::string_view roberta_head = R"(
end
linear lm_head.dense n n +
norm lm_head.layer_norm n +
linear lm_head.decoder n V tied roberta.embeddings.word_embeddings.weight
bias:o lm_head.bias V
)";

  /// Images are squares.
  static constexpr std::string_view image_sizes = R"(
width n = hidden_size
depth L = num_hidden_layers
grows H = num_attention_heads
let C = n/H
let patch = 16
let rows = (image_height-image_height%patch_height)/patch_height
let columns = (image_width-image_width%patch_width)/patch_width
let patches = rows*columns
let channels = num_channels or 3
let qkv = qkv_bias or 1
)";

  static constexpr std::string_view vit_layer = R"(
norm layernorm_before n +
linear attention.q_proj n n +qkv
linear attention.k_proj n n +qkv
linear attention.v_proj n n +qkv
linear attention.o_proj n n +
norm layernorm_after n +
linear mlp.fc1 n F +
linear mlp.fc2 F n +
)";
};

}  // namespace scalewise::detail
