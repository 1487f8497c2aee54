// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The families of fairseq: BART and OPT as in transformers, and fairseq itself. Read in: fairseq
// models/transformer/transformer_{base,encoder,decoder}.py, modules/transformer_layer.py,
// modules/positional_embedding.py; transformers modeling_opt.py and
// convert_bart_original_pytorch_checkpoint_to_pytorch.py.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

namespace detail {

/// A stack without its embedding of tokens; `final_norm` is the name of the norm after it.
inline void fairseq_stack(Model& model, const std::string& names, Stack stack,
                          const std::string& final_norm) {
  const Shape& s = model.shape;
  const long d = s.d_model;
  const std::string entries = stack == Stack::main      ? ""
                              : stack == Stack::encoder ? "encoder."
                                                        : "decoder.";
  const Writer top(model, names, entries);
  if (s.learned_positions) {
    // Of all rows, two more than there are positions.
    top.table("embed_positions.weight", "position_embedding", s.context, d);
  }
  if (s.embedding_norm) top.norm("layernorm_embedding", "embedding_norm");
  const auto attention = [&](const Writer& layer, const std::string& module,
                             const std::string& kind) {
    layer.dense(module + ".k_proj", kind + "key", d, d, s.biases);
    layer.dense(module + ".v_proj", kind + "value", d, d, s.biases);
    layer.dense(module + ".q_proj", kind + "query", d, d, s.biases);
    layer.dense(module + ".out_proj", kind + "attention_output", d, d, s.biases);
    layer.norm(module + "_layer_norm", kind + "attention_norm");
  };
  const long layers = stack == Stack::encoder ? s.encoder_depth : s.depth;
  for (long n = 0; n < layers; ++n) {
    const std::string entry = stack == Stack::main ? numbered("layer.", n) : numbered(entries, n);
    const Writer layer(model, numbered(names + "layers.", n), entry);
    attention(layer, "self_attn", "");
    if (stack == Stack::decoder) attention(layer, "encoder_attn", "cross_");
    layer.dense("fc1", "mlp_up", d, s.d_ff, s.biases);
    layer.dense("fc2", "mlp_down", s.d_ff, d, s.biases);
    layer.norm("final_layer_norm", "mlp_norm");  // of this layer
  }
  if (s.final_norm) top.norm(final_norm, "final_norm");
}

}  // namespace detail

/// BartForConditionalGeneration, and mBART with a norm after each stack. All embeddings are one.
inline Model hf_bart(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("hf-bart", title, shape);
  const Shape& s = model.shape;
  const std::string shared = "model.shared.weight";
  Writer(model, "", "").table(shared, "token_embedding", s.vocab, s.d_model);
  detail::fairseq_stack(model, "model.encoder.", Stack::encoder, "layer_norm");
  detail::fairseq_stack(model, "model.decoder.", Stack::decoder, "layer_norm");
  model.buffers = {{"final_logits_bias", {1, s.vocab}}};
  model.aliases = {{"model.encoder.embed_tokens.weight", shared},
                   {"model.decoder.embed_tokens.weight", shared},
                   {"lm_head.weight", shared}};
  return model;
}

/// fairseq's transformer with --share-all-embeddings, or transformer_lm without an encoder.
inline Model fairseq(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("fairseq", title, shape);
  const Shape& s = model.shape;
  const bool both = s.encoder_depth > 0;
  const std::string first = both ? "encoder.embed_tokens.weight" : "decoder.embed_tokens.weight";
  const Writer top(model, "", "");
  top.table(first, "token_embedding", s.vocab, s.d_model);
  if (both) detail::fairseq_stack(model, "encoder.", Stack::encoder, "layer_norm");
  detail::fairseq_stack(model, "decoder.", both ? Stack::decoder : Stack::main, "layer_norm");
  for (const std::string stack : {"encoder.", "decoder."}) {
    if (!both && stack == "encoder.") continue;
    top.buffer(stack + "version", {1});
    if (!s.learned_positions) top.buffer(stack + "embed_positions._float_tensor", {1});
  }
  if (both) model.aliases.emplace_back("decoder.embed_tokens.weight", first);
  if (s.tied_head.value_or(false)) {
    model.aliases.emplace_back("decoder.output_projection.weight", first);
  } else {
    top.matrix("decoder.output_projection.weight", "head", s.d_model, s.vocab);
  }
  return model;
}

/// OPTForCausalLM: fairseq's decoder, with the final norm under the name of that of each layer.
inline Model opt(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("opt", title, shape);
  const Shape& s = model.shape;
  const std::string embedding = "model.decoder.embed_tokens.weight";
  Writer(model, "", "").table(embedding, "token_embedding", s.vocab, s.d_model);
  detail::fairseq_stack(model, "model.decoder.", Stack::main, "final_layer_norm");
  model.aliases = {{"lm_head.weight", embedding}};
  return model;
}

}  // namespace scalewise::test::published
