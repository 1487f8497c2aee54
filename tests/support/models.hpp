// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Models of every kind, and all rules, for the tests of what holds for every rule.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/told.hpp"

namespace scalewise::test {

struct Variant {
  std::string name;
  Shape shape;
};

inline Shape tokens() {
  return Shape{.d_model = 24, .depth = 3, .heads = 6, .context = 7, .vocab = 11, .iterations = 100};
}

inline Shape patches() {
  Shape s = tokens();
  s.input = Input::patch;
  s.patch_dim = 10;
  s.classes = 5;
  return s;
}

/// Changes one thing at a time, then several.
inline std::vector<Variant> variants() {
  std::vector<Variant> all;
  const auto add = [&](const std::string& name, Shape shape, auto&& change) {
    change(shape);
    all.push_back({name, shape});
  };
  add("token", tokens(), [](Shape&) {});
  add("tied", tokens(), [](Shape& s) { s.tied_head = true; });
  add("untied", tokens(), [](Shape& s) { s.tied_head = false; });
  add("head bias", tokens(), [](Shape& s) { s.head_bias = true; });
  add("gated", tokens(), [](Shape& s) { s.gated_mlp = true; });
  add("grouped queries", tokens(), [](Shape& s) { s.kv_heads = 2; });
  add("wide heads", tokens(), [](Shape& s) { s.head_dim = 9; });
  add("narrow mlp", tokens(), [](Shape& s) { s.d_ff = 31; });
  add("no bias", tokens(), [](Shape& s) { s.biases = false; });
  add("biases of query, key and value", tokens(), [](Shape& s) {
    s.biases = false, s.kv_heads = 2, s.attention_biases = AttentionBiases::qkv;
  });
  add("biases of the attention", tokens(),
      [](Shape& s) { s.biases = false, s.attention_biases = AttentionBiases::all; });
  add("norms of heads", tokens(), [](Shape& s) { s.kv_heads = 2, s.qk_norm = QkNorm::head; });
  add("norms of all heads", tokens(), [](Shape& s) {
    s.kv_heads = 3, s.head_dim = 9, s.norm_bias = false, s.qk_norm = QkNorm::full;
  });
  add("norms after branches", tokens(), [](Shape& s) { s.branch_norm = true; });
  add("no norm bias", tokens(), [](Shape& s) { s.norm_bias = false; });
  add("no norm gain", tokens(), [](Shape& s) { s.norm_gain = s.norm_bias = false; });
  add("no final norm", tokens(), [](Shape& s) { s.final_norm = false; });
  add("segments", tokens(), [](Shape& s) { s.segments = 2; });
  add("embedding norm", tokens(), [](Shape& s) { s.embedding_norm = true; });
  add("no positions", tokens(), [](Shape& s) { s.learned_positions = false, s.context = 0; });
  add("relative positions", tokens(), [](Shape& s) { s.relative_buckets = 4; });
  add("channel gains", tokens(), [](Shape& s) { s.residual_gain = ResidualGain::channel; });
  add("scalar gains", tokens(), [](Shape& s) { s.residual_gain = ResidualGain::scalar; });
  add("encoder-decoder", tokens(), [](Shape& s) { s.encoder_depth = 4; });
  add("all at once", tokens(), [](Shape& s) {
    s.encoder_depth = 4, s.kv_heads = 3, s.head_dim = 5, s.d_ff = 37, s.segments = 3;
    s.gated_mlp = s.embedding_norm = true, s.tied_head = true, s.head_bias = true;
    s.relative_buckets = 4, s.branch_norm = true;
  });
  add("patch", patches(), [](Shape&) {});
  add("class token", patches(), [](Shape& s) { s.class_token = true; });
  add("patch, plain head", patches(), [](Shape& s) { s.head_bias = false; });
  add("patch, gated, no bias", patches(), [](Shape& s) { s.gated_mlp = true, s.biases = false; });
  return all;
}

/// A plan, or nothing when the rule is not defined for this input, for an encoder with a decoder, or
/// for a gated MLP.
inline std::optional<Plan> planned(const Shape& shape, const Rule& rule) {
  try {
    return make_plan(told(rule), {.model = shape, .base = shape});
  } catch (const InvalidInput& error) {
    INFO(error.what());
    const std::set<std::string> fields{"input", "encoder_depth", "gated_mlp"};
    CHECK(fields.contains(error.field()));
    return {};
  }
}

/// Every shipped rule, and the other forms of those that have several.
inline std::vector<Rule> forms() {
  std::vector<Rule> all = rules();
  all.insert(all.end(),
             {MaximalUpdateTable3{}, MaximalUpdateTable8{}, MaximalUpdateTable9{},
              MaximalUpdate{.table = 3, .zero_head = true},
              MaximalUpdate{.table = 9, .zero_query = true}, CompleteP{.alpha = 0.6},
              MetaPrincipled{.s = 1}, NuGpt{.alignment = 1, .input_rate = 2, .output_rate = 0.5},
              DeepScaleLM{.dropout = 0, .input_correlation = 0.46, .embedding_tables = 2, .k = 1.5},
              ShallowNtk{.tau0 = 1}});
  return all;
}

}  // namespace scalewise::test
