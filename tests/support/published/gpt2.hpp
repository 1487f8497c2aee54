// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// GPT-2 in six spellings. Read in: transformers modeling_gpt2.py, nanoGPT model.py, llama.cpp
// convert_hf_to_gguf.py and gguf-py constants.py, ggml examples/gpt-2/main-backend.cpp, llm.c
// train_gpt2.cu. The released files of GPT-2 have no "transformer." before their names.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

namespace detail {

/// The names that all but GGUF and llm.c derive from OpenAI's.
struct Gpt2Names {
  std::string stem, stem_weight;
  std::string layer, after_layer, separator;
};

inline void gpt2_tensors(Model& model, const Gpt2Names& names, const Style& style) {
  const Shape& s = model.shape;
  const Writer stem(model, names.stem, "", style);
  stem.table("wte" + names.stem_weight, "token_embedding", s.vocab, s.d_model);
  stem.table("wpe" + names.stem_weight, "position_embedding", s.context, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered(names.stem + names.layer, n, names.after_layer),
                       numbered("layer.", n), style);
    const std::string& dot = names.separator;
    layer.norm("ln_1", "attention_norm");
    layer.dense("attn" + dot + "c_attn", query_key_value(s), s.d_model, s.biases);
    layer.dense("attn" + dot + "c_proj", "attention_output", s.d_model, s.d_model, s.biases);
    layer.norm("ln_2", "mlp_norm");
    layer.dense("mlp" + dot + "c_fc", "mlp_up", s.d_model, s.d_ff, s.biases);
    layer.dense("mlp" + dot + "c_proj", "mlp_down", s.d_ff, s.d_model, s.biases);
  }
  stem.norm("ln_f", "final_norm");
}

inline const Gpt2Names hub_names{"transformer.", ".weight", "h.", ".", "."};

}  // namespace detail

/// Hugging Face: matrices are Conv1D, [in, out].
inline Model hf_gpt2(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("hf-gpt2", title, shape);
  const Shape& s = model.shape;
  detail::gpt2_tensors(model, detail::hub_names, {.out_in = false});
  for (long n = 0; n < s.depth; ++n) {
    const Writer attention(model, numbered("transformer.h.", n, ".attn."), "");
    attention.buffer("bias", {1, 1, s.context, s.context});
    attention.buffer("masked_bias", {});
  }
  model.aliases = {{"lm_head.weight", "transformer.wte.weight"}};
  return model;
}

/// The same names, but matrices are nn.Linear, [out, in]. Without biases norms have none either.
inline Model nanogpt(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("nanogpt", title, shape);
  const Shape& s = model.shape;
  detail::gpt2_tensors(model, detail::hub_names, {});
  for (long n = 0; n < s.depth; ++n) {
    const Writer attention(model, numbered("transformer.h.", n, ".attn."), "");
    attention.buffer("bias", {1, 1, s.context, s.context});  // where flash attention is missing
  }
  model.aliases = {{"lm_head.weight", "transformer.wte.weight"}};
  return model;
}

/// ggml's example: ne = {in, out}, so [out, in] here.
inline Model ggml_gpt2(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("ggml-gpt2", title, shape);
  const Style style{.weight = "/w", .bias = "/b", .gain = "/g", .shift = "/b"};
  detail::gpt2_tensors(model, {"model/", "", "h", "/", "/"}, style);
  model.aliases = {{"model/lm_head", "model/wte"}};
  return model;
}

/// GGUF as llama.cpp's converter writes it: Conv1D is transposed, so [out, in].
inline Model gguf_gpt2(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("gguf-gpt2", title, shape);
  const Shape& s = model.shape;
  const Writer stem(model, "", "");
  stem.table("token_embd.weight", "token_embedding", s.vocab, s.d_model);
  stem.table("position_embd.weight", "position_embedding", s.context, s.d_model);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("blk.", n), numbered("layer.", n));
    layer.norm("attn_norm", "attention_norm");
    layer.dense("attn_qkv", query_key_value(s), s.d_model, s.biases);
    layer.dense("attn_output", "attention_output", s.d_model, s.d_model, s.biases);
    layer.norm("ffn_norm", "mlp_norm");
    layer.dense("ffn_up", "mlp_up", s.d_model, s.d_ff, s.biases);
    layer.dense("ffn_down", "mlp_down", s.d_ff, s.d_model, s.biases);
  }
  stem.norm("output_norm", "final_norm");
  model.aliases = {{"output.weight", "token_embd.weight"}};
  return model;
}

/// llm.c: 16 slots in this order, those of layers as one slab [layers, out, in], and rows of padding
/// below the embedding.
inline Model llm_c(const Shape& shape, long padded_vocab, const std::string& title = "small") {
  Model model = empty_model("llm-c", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const auto slab = [&](const std::string& name, const std::vector<Slice>& slices, long out,
                        long in) {
    Owner owner;
    owner.tensor = {name, {s.depth, out}};
    if (in > 0) owner.tensor.shape.push_back(in);
    owner.transposed = in > 0;
    for (long n = 0; n < s.depth; ++n) {
      for (const Slice& slice : slices) {
        Part part{numbered("layer.", n) + slice.entry, {{0, {{n, 1}}}}};
        if (slices.size() > 1) part.select.push_back({1, slice.runs});
        owner.parts.push_back(part);
      }
    }
    model.owners.push_back(owner);
  };
  const auto one = [](const std::string& entry) { return std::vector<Slice>{{entry, {}}}; };
  model.owners.push_back(
      {{"wte", {padded_vocab, d}}, {{"token_embedding", {{0, {{0, s.vocab}}}}}}, false});
  model.owners.push_back({{"wpe", {s.context, d}}, {{"position_embedding", {}}}, false});
  slab("ln1w", one("attention_norm_gain"), d, 0);
  slab("ln1b", one("attention_norm_bias"), d, 0);
  slab("qkvw", query_key_value(s), 3 * d, d);
  slab("qkvb", Writer::biases(query_key_value(s)), 3 * d, 0);
  slab("attprojw", one("attention_output"), d, d);
  slab("attprojb", one("attention_output_bias"), d, 0);
  slab("ln2w", one("mlp_norm_gain"), d, 0);
  slab("ln2b", one("mlp_norm_bias"), d, 0);
  slab("fcw", one("mlp_up"), 4 * d, d);
  slab("fcb", one("mlp_up_bias"), 4 * d, 0);
  slab("fcprojw", one("mlp_down"), d, 4 * d);
  slab("fcprojb", one("mlp_down_bias"), d, 0);
  model.owners.push_back({{"lnfw", {d}}, {{"final_norm_gain", {}}}, false});
  model.owners.push_back({{"lnfb", {d}}, {{"final_norm_bias", {}}}, false});
  return model;
}

}  // namespace scalewise::test::published
