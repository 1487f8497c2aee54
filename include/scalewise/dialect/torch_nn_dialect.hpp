// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dialect/dialect.hpp"

namespace scalewise::dialect {

namespace detail {

// A model with one stack has it in `encoder`.
inline constexpr TensorPattern torch_nn_patterns[] = {
    {"embedding.weight", "token_embedding"},
    {"positions.weight", "position_embedding"},
    {"encoder_positions.weight", "encoder.position_embedding"},
    {"decoder_positions.weight", "decoder.position_embedding"},
    {"transformer.encoder.layers.{}.self_attn.in_proj_weight",
     "layer.{}.query layer.{}.key layer.{}.value"},
    {"transformer.encoder.layers.{}.self_attn.in_proj_bias",
     "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"transformer.encoder.layers.{}.self_attn.out_proj.weight", "layer.{}.attention_output"},
    {"transformer.encoder.layers.{}.self_attn.out_proj.bias", "layer.{}.attention_output_bias"},
    {"transformer.encoder.layers.{}.linear1.weight", "layer.{}.mlp_up"},
    {"transformer.encoder.layers.{}.linear1.bias", "layer.{}.mlp_up_bias"},
    {"transformer.encoder.layers.{}.linear2.weight", "layer.{}.mlp_down"},
    {"transformer.encoder.layers.{}.linear2.bias", "layer.{}.mlp_down_bias"},
    {"transformer.encoder.layers.{}.norm1.weight", "layer.{}.attention_norm_gain"},
    {"transformer.encoder.layers.{}.norm1.bias", "layer.{}.attention_norm_bias"},
    {"transformer.encoder.layers.{}.norm2.weight", "layer.{}.mlp_norm_gain"},
    {"transformer.encoder.layers.{}.norm2.bias", "layer.{}.mlp_norm_bias"},
    {"transformer.encoder.norm.weight", "final_norm_gain"},
    {"transformer.encoder.norm.bias", "final_norm_bias"},
    {"transformer.encoder.layers.{}.self_attn.in_proj_weight",
     "encoder.{}.query encoder.{}.key encoder.{}.value"},
    {"transformer.encoder.layers.{}.self_attn.in_proj_bias",
     "encoder.{}.query_bias encoder.{}.key_bias encoder.{}.value_bias"},
    {"transformer.encoder.layers.{}.self_attn.out_proj.weight", "encoder.{}.attention_output"},
    {"transformer.encoder.layers.{}.self_attn.out_proj.bias", "encoder.{}.attention_output_bias"},
    {"transformer.encoder.layers.{}.linear1.weight", "encoder.{}.mlp_up"},
    {"transformer.encoder.layers.{}.linear1.bias", "encoder.{}.mlp_up_bias"},
    {"transformer.encoder.layers.{}.linear2.weight", "encoder.{}.mlp_down"},
    {"transformer.encoder.layers.{}.linear2.bias", "encoder.{}.mlp_down_bias"},
    {"transformer.encoder.layers.{}.norm1.weight", "encoder.{}.attention_norm_gain"},
    {"transformer.encoder.layers.{}.norm1.bias", "encoder.{}.attention_norm_bias"},
    {"transformer.encoder.layers.{}.norm2.weight", "encoder.{}.mlp_norm_gain"},
    {"transformer.encoder.layers.{}.norm2.bias", "encoder.{}.mlp_norm_bias"},
    {"transformer.encoder.norm.weight", "encoder.final_norm_gain"},
    {"transformer.encoder.norm.bias", "encoder.final_norm_bias"},
    {"transformer.decoder.layers.{}.self_attn.in_proj_weight",
     "decoder.{}.query decoder.{}.key decoder.{}.value"},
    {"transformer.decoder.layers.{}.self_attn.in_proj_bias",
     "decoder.{}.query_bias decoder.{}.key_bias decoder.{}.value_bias"},
    {"transformer.decoder.layers.{}.self_attn.out_proj.weight", "decoder.{}.attention_output"},
    {"transformer.decoder.layers.{}.self_attn.out_proj.bias", "decoder.{}.attention_output_bias"},
    {"transformer.decoder.layers.{}.multihead_attn.in_proj_weight",
     "decoder.{}.cross_query decoder.{}.cross_key decoder.{}.cross_value"},
    {"transformer.decoder.layers.{}.multihead_attn.in_proj_bias",
     "decoder.{}.cross_query_bias decoder.{}.cross_key_bias decoder.{}.cross_value_bias"},
    {"transformer.decoder.layers.{}.multihead_attn.out_proj.weight",
     "decoder.{}.cross_attention_output"},
    {"transformer.decoder.layers.{}.multihead_attn.out_proj.bias",
     "decoder.{}.cross_attention_output_bias"},
    {"transformer.decoder.layers.{}.linear1.weight", "decoder.{}.mlp_up"},
    {"transformer.decoder.layers.{}.linear1.bias", "decoder.{}.mlp_up_bias"},
    {"transformer.decoder.layers.{}.linear2.weight", "decoder.{}.mlp_down"},
    {"transformer.decoder.layers.{}.linear2.bias", "decoder.{}.mlp_down_bias"},
    {"transformer.decoder.layers.{}.norm1.weight", "decoder.{}.attention_norm_gain"},
    {"transformer.decoder.layers.{}.norm1.bias", "decoder.{}.attention_norm_bias"},
    {"transformer.decoder.layers.{}.norm2.weight", "decoder.{}.cross_attention_norm_gain"},
    {"transformer.decoder.layers.{}.norm2.bias", "decoder.{}.cross_attention_norm_bias"},
    {"transformer.decoder.layers.{}.norm3.weight", "decoder.{}.mlp_norm_gain"},
    {"transformer.decoder.layers.{}.norm3.bias", "decoder.{}.mlp_norm_bias"},
    {"transformer.decoder.norm.weight", "decoder.final_norm_gain"},
    {"transformer.decoder.norm.bias", "decoder.final_norm_bias"},
    {"head.weight", "head"},
    {"head.bias", "head_bias"},
};

}  // namespace detail

/// Source:   torch.nn.Transformer and TransformerEncoder; embedding, positions and head are names of
///           our own, as these modules have none.
inline constexpr Dialect torch_nn{"torch-nn", "torch.nn.Transformer", "transformer.",
                                  MatrixLayout::out_in, detail::torch_nn_patterns};

}  // namespace scalewise::dialect
