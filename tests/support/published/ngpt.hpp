// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// NVIDIA's nGPT, read in model.py with use_nGPT = 1: uv = c_fc(h), u above v, then u * silu(v).

#pragma once

#include <string>

#include "support/published/writer.hpp"

namespace scalewise::test::published {

inline Model ngpt(const Shape& shape, const std::string& title = "small") {
  Model model = empty_model("ngpt", title, shape);
  const Shape& s = model.shape;
  const long d = s.d_model;
  const Writer top(model, "", "");
  top.vector("sz", "logit_scale", s.vocab);
  top.table("transformer.wte.weight", "token_embedding", s.vocab, d);
  for (long n = 0; n < s.depth; ++n) {
    const Writer layer(model, numbered("transformer.h.", n), numbered("layer.", n));
    layer.vector("attn_alpha", "attention_step", d);
    layer.vector("mlp_alpha", "mlp_step", d);
    layer.vector("sqk", "qk_scale", d);
    layer.vector("suv", in_turn({{"up_scale", s.d_ff}, {"gate_scale", s.d_ff}}));
    layer.dense("key", "key", d, d, s.biases);
    layer.dense("query", "query", d, d, s.biases);
    layer.dense("value", "value", d, d, s.biases);
    layer.dense("att_c_proj", "attention_output", d, d, s.biases);
    layer.dense("c_fc", in_turn({{"mlp_up", s.d_ff}, {"mlp_gate", s.d_ff}}), d, s.biases);
    layer.dense("mlp_c_proj", "mlp_down", s.d_ff, d, s.biases);
  }
  top.matrix("lm_head.weight", "head", d, s.vocab);
  return model;
}

}  // namespace scalewise::test::published
