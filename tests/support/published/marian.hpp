// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// marian: matrices are [in, out], vectors have an axis of size 1 before theirs, layers count from 1.
// Read in: marian-dev models/transformer.h, layers/{embedding,output}.cpp, layers/generic.h.

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

enum class MarianNorms { after_blocks, before_blocks };

/// --tied-embeddings-all, or --tied-embeddings-src where the head is not tied. The options for norms
/// before blocks put "_pre" behind names; positions are one table for both stacks if they are trained.
inline Model marian(const Shape& shape, const std::string& title = "small",
                    MarianNorms norms = MarianNorms::after_blocks) {
  Model model = empty_model("marian", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const std::string pre = norms == MarianNorms::before_blocks ? "_pre" : "";
  const auto matrix = [&](const std::string& name, const std::string& entry, long in, long out) {
    model.owners.push_back({{name, {in, out}}, {{entry, {}}}, false});
  };
  const auto vector = [&](const std::string& name, const std::string& entry, long size) {
    model.owners.push_back({{name, {1, size}}, {{entry, {}}}, false});
  };
  const auto norm = [&](const std::string& name, const std::string& entry,
                        const std::string& after) {
    if (s.norm_gain) vector(name + "_ln_scale" + after, entry + "_gain", d);
    if (s.norm_bias) vector(name + "_ln_bias" + after, entry + "_bias", d);
  };
  const auto attention = [&](const std::string& names, const std::string& entries) {
    for (const auto& [letter, entry] :
         {std::pair{"q", "query"}, {"k", "key"}, {"v", "value"}, {"o", "attention_output"}}) {
      matrix(names + "_W" + letter, entries + entry, d, d);
      vector(names + "_b" + letter, entries + entry + "_bias", d);
    }
    norm(names + "_Wo", entries + "attention_norm", pre);
  };
  const auto stack = [&](const std::string& which, long layers) {
    if (s.embedding_norm) norm(which + "_emb", which + ".embedding_norm", "_pre");
    for (long n = 0; n < layers; ++n) {
      const std::string names = numbered(which + "_l", n + 1, "_");
      const std::string entries = numbered(which + ".", n);
      attention(names + "self", entries);
      if (which == "decoder") attention(names + "context", entries + "cross_");
      matrix(names + "ffn_W1", entries + "mlp_up", d, s.d_ff);
      vector(names + "ffn_b1", entries + "mlp_up_bias", s.d_ff);
      matrix(names + "ffn_W2", entries + "mlp_down", s.d_ff, d);
      vector(names + "ffn_b2", entries + "mlp_down_bias", d);
      norm(names + "ffn_ffn", entries + "mlp_norm", pre);
    }
    if (s.final_norm) norm(which + "_top", which + ".final_norm", "");
  };
  matrix("Wemb", "token_embedding", s.vocab, d);
  if (s.learned_positions) {
    model.owners.push_back(
        {{"Wpos", {s.context, d}},
         {{"encoder.position_embedding", {}}, {"decoder.position_embedding", {}}},
         false});
  }
  stack("encoder", s.encoder_depth);
  stack("decoder", s.depth);
  if (!s.tied_head.value_or(false)) {
    Writer(model, "", "").matrix("decoder_ff_logit_out_Wt", "head", d, s.vocab);  // [out, in]
  }
  if (*s.head_bias) vector("decoder_ff_logit_out_b", "head_bias", s.vocab);
  model.buffers = {{"special:model.yml", {1021}}};  // the options, as bytes of text
  return model;
}

}  // namespace scalewise::test::published
