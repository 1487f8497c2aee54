// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// torch::nn::Transformer and TransformerEncoder, names and shapes as named_parameters() of torch
// 1.13 prints them. They have neither embedding nor head. A user's module is assumed to call those
// embedding, positions (encoder_positions and decoder_positions with two stacks) and head, and a
// TransformerEncoder encoder.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

namespace detail {

inline void torch_stack(Model& model, const std::string& names, Stack stack) {
  const Shape& s = model.shape;
  const long d = s.d_model;
  const bool decoder = stack == Stack::decoder;
  const std::string entries = stack == Stack::main      ? ""
                              : stack == Stack::encoder ? "encoder."
                                                        : "decoder.";
  const auto attention = [&](const Writer& layer, const std::string& module,
                             const std::string& kind) {
    const std::vector<Slice> three = query_key_value(s, kind);
    layer.matrix(module + ".in_proj_weight", three, d);
    if (s.biases) layer.vector(module + ".in_proj_bias", Writer::biases(three));
    layer.dense(module + ".out_proj", kind + "attention_output", d, d, s.biases);
  };
  const long layers = stack == Stack::encoder ? s.encoder_depth : s.depth;
  for (long n = 0; n < layers; ++n) {
    const std::string entry = stack == Stack::main ? numbered("layer.", n) : numbered(entries, n);
    const Writer layer(model, numbered(names + "layers.", n), entry);
    attention(layer, "self_attn", "");
    if (decoder) attention(layer, "multihead_attn", "cross_");
    layer.dense("linear1", "mlp_up", d, s.d_ff, s.biases);
    layer.dense("linear2", "mlp_down", s.d_ff, d, s.biases);
    layer.norm("norm1", "attention_norm");
    if (decoder) layer.norm("norm2", "cross_attention_norm");
    layer.norm(decoder ? "norm3" : "norm2", "mlp_norm");
  }
  if (s.final_norm) Writer(model, names, entries).norm("norm", "final_norm");
}

}  // namespace detail

inline Model torch_nn(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("torch-nn", title, shape);
  const Shape& s = model.shape;
  const bool both = s.encoder_depth > 0;
  const Writer top(model, "", "");
  top.table("embedding.weight", "token_embedding", s.vocab, s.d_model);
  if (s.learned_positions && both) {
    for (const std::string stack : {"encoder", "decoder"}) {
      top.table(stack + "_positions.weight", stack + ".position_embedding", s.context, s.d_model);
    }
  } else if (s.learned_positions) {
    top.table("positions.weight", "position_embedding", s.context, s.d_model);
  }
  detail::torch_stack(model, "encoder.", both ? Stack::encoder : Stack::main);
  if (both) detail::torch_stack(model, "decoder.", Stack::decoder);
  if (s.tied_head.value_or(false)) {
    model.aliases = {{"head.weight", "embedding.weight"}};
  } else {
    top.matrix("head.weight", "head", s.d_model, s.vocab);
  }
  if (*s.head_bias) top.vector("head.bias", "head_bias", s.vocab);
  return model;
}

}  // namespace scalewise::test::published
