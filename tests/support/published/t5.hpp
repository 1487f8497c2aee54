// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// T5 as in transformers. Read in: modeling_t5.py and models derived from it.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

/// T5ForConditionalGeneration: 1.0 with a tied head, 1.1 with a gated MLP and a head of its own.
inline Model hf_t5(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("hf-t5", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const long inner = s.heads * s.head_dim;
  Writer(model, "", "").table("shared.weight", "token_embedding", s.vocab, d);
  const auto attention = [&](const Writer& layer, const std::string& module,
                             const std::string& kind) {
    layer.dense(module + ".q", kind + "query", d, inner, s.biases);
    layer.dense(module + ".k", kind + "key", d, inner, s.biases);
    layer.dense(module + ".v", kind + "value", d, inner, s.biases);
    layer.dense(module + ".o", kind + "attention_output", inner, d, s.biases);
  };
  const auto block = [&](const std::string& stack, long n) {
    const bool decoder = stack == "decoder.";
    const Writer layer(model, numbered(stack + "block.", n), numbered(stack, n));
    attention(layer, "layer.0.SelfAttention", "");
    if (n == 0) {
      layer.table("layer.0.SelfAttention.relative_attention_bias.weight", "relative_position",
                  s.relative_buckets, s.heads);
    }
    layer.norm("layer.0.layer_norm", "attention_norm");
    if (decoder) {
      attention(layer, "layer.1.EncDecAttention", "cross_");
      layer.norm("layer.1.layer_norm", "cross_attention_norm");
    }
    const std::string last = decoder ? "layer.2." : "layer.1.";
    if (s.gated_mlp) {
      layer.dense(last + "DenseReluDense.wi_0", "mlp_gate", d, s.d_ff, s.biases);
      layer.dense(last + "DenseReluDense.wi_1", "mlp_up", d, s.d_ff, s.biases);
    } else {
      layer.dense(last + "DenseReluDense.wi", "mlp_up", d, s.d_ff, s.biases);
    }
    layer.dense(last + "DenseReluDense.wo", "mlp_down", s.d_ff, d, s.biases);
    layer.norm(last + "layer_norm", "mlp_norm");
  };
  for (long n = 0; n < s.encoder_depth; ++n) block("encoder.", n);
  Writer(model, "encoder.", "encoder.").norm("final_layer_norm", "final_norm");
  for (long n = 0; n < s.depth; ++n) block("decoder.", n);
  Writer(model, "decoder.", "decoder.").norm("final_layer_norm", "final_norm");
  // In the files of 1.0, and not in the model.
  model.buffers = {{"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                    {s.relative_buckets, s.heads}}};
  model.aliases = {{"encoder.embed_tokens.weight", "shared.weight"},
                   {"decoder.embed_tokens.weight", "shared.weight"}};
  if (s.tied_head.value_or(false)) {
    model.aliases.emplace_back("lm_head.weight", "shared.weight");
  } else {
    Writer(model, "", "").matrix("lm_head.weight", "head", d, s.vocab);
  }
  return model;
}

}  // namespace scalewise::test::published
