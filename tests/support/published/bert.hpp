// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// BERT and ViT. Read in: transformers convert_vit_timm_to_pytorch.py, timm models/vision_transformer.py
// and layers/attention.py; BERT's in what transformers prints when it loads the first release, whose norms
// have gamma and beta.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

enum class BertHeads { masked_lm, pre_training };
enum class BertNorms { weight_bias, gamma_beta };

/// BertForMaskedLM or BertForPreTraining. Norms come after the blocks.
inline Model hf_bert(const Shape& shape, const std::string& title = "small",
                     BertHeads heads = BertHeads::masked_lm,
                     BertNorms norms = BertNorms::weight_bias) {
  Model model = empty_model("hf-bert", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  Style style;
  if (norms == BertNorms::gamma_beta) {
    style.gain = ".gamma";
    style.shift = ".beta";
  }
  const Writer top(model, "bert.embeddings.", "", style);
  top.table("word_embeddings.weight", "token_embedding", s.vocab, d);
  top.table("position_embeddings.weight", "position_embedding", s.context, d);
  top.table("token_type_embeddings.weight", "segment_embedding", s.segments, d);
  top.norm("LayerNorm", "embedding_norm");
  top.buffer("position_ids", {1, s.context});
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("bert.encoder.layer.", n), numbered("layer.", n), style);
    layer.dense("attention.self.query", "query", d, d, s.biases);
    layer.dense("attention.self.key", "key", d, d, s.biases);
    layer.dense("attention.self.value", "value", d, d, s.biases);
    layer.dense("attention.output.dense", "attention_output", d, d, s.biases);
    layer.norm("attention.output.LayerNorm", "attention_norm");
    layer.dense("intermediate.dense", "mlp_up", d, s.d_ff, s.biases);
    layer.dense("output.dense", "mlp_down", s.d_ff, d, s.biases);
    layer.norm("output.LayerNorm", "mlp_norm");
  }
  Writer(model, "", "").vector("cls.predictions.bias", "head_bias", s.vocab);
  const std::string transform = "cls.predictions.transform.";
  model.extra = {{transform + "dense.weight", {d, d}},
                 {transform + "dense.bias", {d}},
                 {transform + "LayerNorm" + style.gain, {d}},
                 {transform + "LayerNorm" + style.shift, {d}}};
  if (heads == BertHeads::pre_training) {
    model.extra.push_back({"bert.pooler.dense.weight", {d, d}});
    model.extra.push_back({"bert.pooler.dense.bias", {d}});
    model.extra.push_back({"cls.seq_relationship.weight", {2, d}});
    model.extra.push_back({"cls.seq_relationship.bias", {2}});
  }
  model.aliases = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                   {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  return model;
}

namespace detail {

/// The tensors before the blocks: a convolution over patches, [out, colours, side, side], and two
/// tables with an axis of batches.
inline void vit_stem(Model& model, const std::string& projection, const std::string& token,
                     const std::string& positions) {
  const Shape& s = model.shape;
  long side = 1;
  while (3 * side * side < s.patch_dim) ++side;
  if (s.class_token) {
    model.owners.push_back({{token, {1, 1, s.d_model}}, {{"class_token", {}}}, false});
  }
  model.owners.push_back(
      {{positions, {1, s.context, s.d_model}}, {{"position_embedding", {}}}, false});
  model.owners.push_back(
      {{projection + ".weight", {s.d_model, 3, side, side}}, {{"patch_embedding", {}}}, true});
  Writer(model, projection, "").vector(".bias", "patch_bias", s.d_model);
}

/// The names of ViTForImageClassification that differ between releases of transformers.
struct HfVitNames {
  const char *layers, *query, *key, *value, *output, *up, *down;
};

inline Model hf_vit(const Shape& shape, const std::string& title, const HfVitNames& names) {
  Model model = empty_model("hf-vit", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  vit_stem(model, "vit.embeddings.patch_embeddings.projection", "vit.embeddings.cls_token",
           "vit.embeddings.position_embeddings");
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered(names.layers, n), numbered("layer.", n));
    layer.dense(names.query, "query", d, d, s.biases);
    layer.dense(names.key, "key", d, d, s.biases);
    layer.dense(names.value, "value", d, d, s.biases);
    layer.dense(names.output, "attention_output", d, d, s.biases);
    layer.norm("layernorm_before", "attention_norm");
    layer.norm("layernorm_after", "mlp_norm");
    layer.dense(names.up, "mlp_up", d, s.d_ff, s.biases);
    layer.dense(names.down, "mlp_down", s.d_ff, d, s.biases);
  }
  Writer(model, "vit.", "").norm("layernorm", "final_norm");
  Writer(model, "", "").dense("classifier", "head", d, s.classes, *s.head_bias);
  return model;
}

}  // namespace detail

/// ViTForImageClassification.
inline Model hf_vit(const Shape& shape, const std::string& title = "small") {
  return detail::hf_vit(shape, title,
                        {"vit.encoder.layer.", "attention.attention.query",
                         "attention.attention.key", "attention.attention.value",
                         "attention.output.dense", "intermediate.dense", "output.dense"});
}

/// ViTForImageClassification of transformers 5 (c0ce2e4, models/vit/modeling_vit.py), in memory.
inline Model hf_vit_5(const Shape& shape, const std::string& title = "transformers 5") {
  return detail::hf_vit(shape, title,
                        {"vit.layers.", "attention.q_proj", "attention.k_proj", "attention.v_proj",
                         "attention.o_proj", "mlp.fc1", "mlp.fc2"});
}

/// timm's VisionTransformer, with LayerScale where the shape has a gain per channel.
inline Model timm_vit(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("timm-vit", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const bool scaled = s.residual_gain == ResidualGain::channel;
  detail::vit_stem(model, "patch_embed.proj", "cls_token", "pos_embed");
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("blocks.", n), numbered("layer.", n));
    layer.norm("norm1", "attention_norm");
    layer.dense("attn.qkv", query_key_value(s), d, s.biases);
    layer.dense("attn.proj", "attention_output", d, d, s.biases);
    if (scaled) layer.vector("ls1.gamma", "attention_gain", d);
    layer.norm("norm2", "mlp_norm");
    layer.dense("mlp.fc1", "mlp_up", d, s.d_ff, s.biases);
    layer.dense("mlp.fc2", "mlp_down", s.d_ff, d, s.biases);
    if (scaled) layer.vector("ls2.gamma", "mlp_gain", d);
  }
  const Writer top(model, "", "");
  top.norm("norm", "final_norm");
  top.dense("head", "head", d, s.classes, *s.head_bias);
  return model;
}

}  // namespace scalewise::test::published
