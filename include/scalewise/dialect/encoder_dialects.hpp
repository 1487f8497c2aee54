// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/dialect/dialect.hpp"

namespace scalewise::dialect {

namespace detail {

inline constexpr TensorPattern hf_bert_patterns[] = {
    {"bert.embeddings.word_embeddings.weight", "token_embedding"},
    {"bert.embeddings.position_embeddings.weight", "position_embedding"},
    {"bert.embeddings.token_type_embeddings.weight", "segment_embedding"},
    {"bert.embeddings.LayerNorm.weight", "embedding_norm_gain"},
    {"bert.embeddings.LayerNorm.bias", "embedding_norm_bias"},
    {"bert.encoder.layer.{}.attention.self.query.weight", "layer.{}.query"},
    {"bert.encoder.layer.{}.attention.self.query.bias", "layer.{}.query_bias"},
    {"bert.encoder.layer.{}.attention.self.key.weight", "layer.{}.key"},
    {"bert.encoder.layer.{}.attention.self.key.bias", "layer.{}.key_bias"},
    {"bert.encoder.layer.{}.attention.self.value.weight", "layer.{}.value"},
    {"bert.encoder.layer.{}.attention.self.value.bias", "layer.{}.value_bias"},
    {"bert.encoder.layer.{}.attention.output.dense.weight", "layer.{}.attention_output"},
    {"bert.encoder.layer.{}.attention.output.dense.bias", "layer.{}.attention_output_bias"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.weight", "layer.{}.attention_norm_gain"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.bias", "layer.{}.attention_norm_bias"},
    {"bert.encoder.layer.{}.intermediate.dense.weight", "layer.{}.mlp_up"},
    {"bert.encoder.layer.{}.intermediate.dense.bias", "layer.{}.mlp_up_bias"},
    {"bert.encoder.layer.{}.output.dense.weight", "layer.{}.mlp_down"},
    {"bert.encoder.layer.{}.output.dense.bias", "layer.{}.mlp_down_bias"},
    {"bert.encoder.layer.{}.output.LayerNorm.weight", "layer.{}.mlp_norm_gain"},
    {"bert.encoder.layer.{}.output.LayerNorm.bias", "layer.{}.mlp_norm_bias"},
    {"cls.predictions.bias", "head_bias"},
    {"cls.predictions.decoder.weight", "head"},
    {"cls.predictions.decoder.bias", "head_bias", Packing::alias},
    {"bert.pooler.dense.weight", "-"},
    {"bert.pooler.dense.bias", "-"},
    {"cls.predictions.transform.dense.weight", "-"},
    {"cls.predictions.transform.dense.bias", "-"},
    {"cls.predictions.transform.LayerNorm.weight", "-"},
    {"cls.predictions.transform.LayerNorm.bias", "-"},
    {"cls.seq_relationship.weight", "-"},
    {"cls.seq_relationship.bias", "-"},
    {"bert.embeddings.position_ids", ""},
    {"bert.embeddings.token_type_ids", ""},
    {"bert.embeddings.LayerNorm.gamma", "embedding_norm_gain"},
    {"bert.embeddings.LayerNorm.beta", "embedding_norm_bias"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.gamma", "layer.{}.attention_norm_gain"},
    {"bert.encoder.layer.{}.attention.output.LayerNorm.beta", "layer.{}.attention_norm_bias"},
    {"bert.encoder.layer.{}.output.LayerNorm.gamma", "layer.{}.mlp_norm_gain"},
    {"bert.encoder.layer.{}.output.LayerNorm.beta", "layer.{}.mlp_norm_bias"},
    {"cls.predictions.transform.LayerNorm.gamma", "-"},
    {"cls.predictions.transform.LayerNorm.beta", "-"},
};

inline constexpr TensorPattern hf_vit_patterns[] = {
    {"vit.embeddings.cls_token", "class_token", Packing::image},
    {"vit.embeddings.position_embeddings", "position_embedding", Packing::image},
    {"vit.embeddings.patch_embeddings.projection.weight", "patch_embedding", Packing::image},
    {"vit.embeddings.patch_embeddings.projection.bias", "patch_bias"},
    {"vit.encoder.layer.{}.layernorm_before.weight", "layer.{}.attention_norm_gain"},
    {"vit.encoder.layer.{}.layernorm_before.bias", "layer.{}.attention_norm_bias"},
    {"vit.encoder.layer.{}.attention.attention.query.weight", "layer.{}.query"},
    {"vit.encoder.layer.{}.attention.attention.query.bias", "layer.{}.query_bias"},
    {"vit.encoder.layer.{}.attention.attention.key.weight", "layer.{}.key"},
    {"vit.encoder.layer.{}.attention.attention.key.bias", "layer.{}.key_bias"},
    {"vit.encoder.layer.{}.attention.attention.value.weight", "layer.{}.value"},
    {"vit.encoder.layer.{}.attention.attention.value.bias", "layer.{}.value_bias"},
    {"vit.encoder.layer.{}.attention.output.dense.weight", "layer.{}.attention_output"},
    {"vit.encoder.layer.{}.attention.output.dense.bias", "layer.{}.attention_output_bias"},
    {"vit.encoder.layer.{}.layernorm_after.weight", "layer.{}.mlp_norm_gain"},
    {"vit.encoder.layer.{}.layernorm_after.bias", "layer.{}.mlp_norm_bias"},
    {"vit.encoder.layer.{}.intermediate.dense.weight", "layer.{}.mlp_up"},
    {"vit.encoder.layer.{}.intermediate.dense.bias", "layer.{}.mlp_up_bias"},
    {"vit.encoder.layer.{}.output.dense.weight", "layer.{}.mlp_down"},
    {"vit.encoder.layer.{}.output.dense.bias", "layer.{}.mlp_down_bias"},
    {"vit.layernorm.weight", "final_norm_gain"},
    {"vit.layernorm.bias", "final_norm_bias"},
    {"classifier.weight", "head"},
    {"classifier.bias", "head_bias"},
    {"vit.pooler.dense.weight", "-"},
    {"vit.embeddings.mask_token", "-"},
    {"vit.pooler.dense.bias", "-"},
    // transformers 5
    {"vit.layers.{}.layernorm_before.weight", "layer.{}.attention_norm_gain"},
    {"vit.layers.{}.layernorm_before.bias", "layer.{}.attention_norm_bias"},
    {"vit.layers.{}.attention.q_proj.weight", "layer.{}.query"},
    {"vit.layers.{}.attention.q_proj.bias", "layer.{}.query_bias"},
    {"vit.layers.{}.attention.k_proj.weight", "layer.{}.key"},
    {"vit.layers.{}.attention.k_proj.bias", "layer.{}.key_bias"},
    {"vit.layers.{}.attention.v_proj.weight", "layer.{}.value"},
    {"vit.layers.{}.attention.v_proj.bias", "layer.{}.value_bias"},
    {"vit.layers.{}.attention.o_proj.weight", "layer.{}.attention_output"},
    {"vit.layers.{}.attention.o_proj.bias", "layer.{}.attention_output_bias"},
    {"vit.layers.{}.layernorm_after.weight", "layer.{}.mlp_norm_gain"},
    {"vit.layers.{}.layernorm_after.bias", "layer.{}.mlp_norm_bias"},
    {"vit.layers.{}.mlp.fc1.weight", "layer.{}.mlp_up"},
    {"vit.layers.{}.mlp.fc1.bias", "layer.{}.mlp_up_bias"},
    {"vit.layers.{}.mlp.fc2.weight", "layer.{}.mlp_down"},
    {"vit.layers.{}.mlp.fc2.bias", "layer.{}.mlp_down_bias"},
};

/// The names in memory of transformers 5 alone.
inline constexpr TensorPattern hf_vit_5_patterns[] = {
    {"vit.embeddings.cls_token", "class_token", Packing::image},
    {"vit.embeddings.position_embeddings", "position_embedding", Packing::image},
    {"vit.embeddings.patch_embeddings.projection.weight", "patch_embedding", Packing::image},
    {"vit.embeddings.patch_embeddings.projection.bias", "patch_bias"},
    {"vit.layers.{}.layernorm_before.weight", "layer.{}.attention_norm_gain"},
    {"vit.layers.{}.layernorm_before.bias", "layer.{}.attention_norm_bias"},
    {"vit.layers.{}.attention.q_proj.weight", "layer.{}.query"},
    {"vit.layers.{}.attention.q_proj.bias", "layer.{}.query_bias"},
    {"vit.layers.{}.attention.k_proj.weight", "layer.{}.key"},
    {"vit.layers.{}.attention.k_proj.bias", "layer.{}.key_bias"},
    {"vit.layers.{}.attention.v_proj.weight", "layer.{}.value"},
    {"vit.layers.{}.attention.v_proj.bias", "layer.{}.value_bias"},
    {"vit.layers.{}.attention.o_proj.weight", "layer.{}.attention_output"},
    {"vit.layers.{}.attention.o_proj.bias", "layer.{}.attention_output_bias"},
    {"vit.layers.{}.layernorm_after.weight", "layer.{}.mlp_norm_gain"},
    {"vit.layers.{}.layernorm_after.bias", "layer.{}.mlp_norm_bias"},
    {"vit.layers.{}.mlp.fc1.weight", "layer.{}.mlp_up"},
    {"vit.layers.{}.mlp.fc1.bias", "layer.{}.mlp_up_bias"},
    {"vit.layers.{}.mlp.fc2.weight", "layer.{}.mlp_down"},
    {"vit.layers.{}.mlp.fc2.bias", "layer.{}.mlp_down_bias"},
    {"vit.layernorm.weight", "final_norm_gain"},
    {"vit.layernorm.bias", "final_norm_bias"},
    {"classifier.weight", "head"},
    {"classifier.bias", "head_bias"},
    {"vit.pooler.dense.weight", "-"},
    {"vit.pooler.dense.bias", "-"},
    {"vit.embeddings.mask_token", "-"},
};

inline constexpr TensorPattern timm_vit_patterns[] = {
    {"cls_token", "class_token", Packing::image},
    {"pos_embed", "position_embedding", Packing::image},
    {"patch_embed.proj.weight", "patch_embedding", Packing::image},
    {"patch_embed.proj.bias", "patch_bias"},
    {"blocks.{}.norm1.weight", "layer.{}.attention_norm_gain"},
    {"blocks.{}.norm1.bias", "layer.{}.attention_norm_bias"},
    {"blocks.{}.attn.qkv.weight", "layer.{}.query layer.{}.key layer.{}.value"},
    {"blocks.{}.attn.qkv.bias", "layer.{}.query_bias layer.{}.key_bias layer.{}.value_bias"},
    {"blocks.{}.attn.q_norm.weight", "layer.{}.query_norm_gain"},
    {"blocks.{}.attn.q_norm.bias", "layer.{}.query_norm_bias"},
    {"blocks.{}.attn.k_norm.weight", "layer.{}.key_norm_gain"},
    {"blocks.{}.attn.k_norm.bias", "layer.{}.key_norm_bias"},
    {"blocks.{}.attn.proj.weight", "layer.{}.attention_output"},
    {"blocks.{}.attn.proj.bias", "layer.{}.attention_output_bias"},
    {"blocks.{}.ls1.gamma", "layer.{}.attention_gain"},
    {"blocks.{}.norm2.weight", "layer.{}.mlp_norm_gain"},
    {"blocks.{}.norm2.bias", "layer.{}.mlp_norm_bias"},
    {"blocks.{}.mlp.fc1.weight", "layer.{}.mlp_up"},
    {"blocks.{}.mlp.fc1.bias", "layer.{}.mlp_up_bias"},
    {"blocks.{}.mlp.fc2.weight", "layer.{}.mlp_down"},
    {"blocks.{}.mlp.fc2.bias", "layer.{}.mlp_down_bias"},
    {"blocks.{}.ls2.gamma", "layer.{}.mlp_gain"},
    {"norm.weight", "final_norm_gain"},
    {"norm.bias", "final_norm_bias"},
    {"head.weight", "head"},
    {"head.bias", "head_bias"},
};

}  // namespace detail

/// Source:   transformers, modeling_bert.py. The pooler and the layers between the last block and
///           the logits are in no plan.
inline constexpr Dialect hf_bert{
    "hf-bert",
    "Hugging Face BERT",
    "bert.",
    MatrixLayout::out_in,
    detail::hf_bert_patterns,
    "BertForMaskedLM has a layer before its head that no plan has without "
    "--extra cls.predictions.transform.dense.weight:mlp_up:d_model,d_model "
    "--extra cls.predictions.transform.dense.bias:hidden_bias:d_model:d_model "
    "--extra cls.predictions.transform.LayerNorm.weight:final_norm_gain:d_model "
    "--extra cls.predictions.transform.LayerNorm.bias:final_norm_bias:d_model"};

/// Source:   transformers 5 (c0ce2e4), models/vit/modeling_vit.py, and conversion_mapping.py for what files
///           have; detected as hf-vit, which has both.
inline constexpr Dialect hf_vit_5{"hf-vit-5", "Hugging Face ViT, transformers 5", "vit.",
                                  MatrixLayout::out_in, detail::hf_vit_5_patterns};

/// Source:   transformers 4 (005db82), models/vit/modeling_vit.py: the class token is [1, 1, n], positions are
///           [1, t, n], and patches a convolution, [n, colours, side, side].
inline constexpr Dialect hf_vit{"hf-vit", "Hugging Face ViT", "vit.", MatrixLayout::out_in,
                                detail::hf_vit_patterns};

/// Source:   timm, vision_transformer.py and layers/patch_embed.py, with the axes of ViT in transformers.
inline constexpr Dialect timm_vit{"timm-vit", "timm's ViT", "", MatrixLayout::out_in,
                                  detail::timm_vit_patterns};

}  // namespace scalewise::dialect
