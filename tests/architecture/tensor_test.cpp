// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Facts about tensors beyond the table in docs/shape.md, which tests/docs/shape_tables.py compares with plans: blocks, the
// letters of fans, and experts.

#include "scalewise/architecture/tensor.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "scalewise/scaling/formula.hpp"
#include "support/catch.hpp"

namespace {

using namespace scalewise;

Shape tokens() { return Shape{.d_model = 24, .depth = 2, .heads = 6, .context = 7, .vocab = 11}; }

Tensor find(const Shape& shape, const std::string& name) {
  for (const Tensor& tensor : tensors(resolved(shape))) {
    if (tensor.name == name) return tensor;
  }
  FAIL("no tensor " << name);
  return {};
}

}  // namespace

TEST_CASE("A tensor says which block of its layer it belongs to") {
  Shape shape = tokens();
  shape.encoder_depth = 1;
  shape.residual_gain = ResidualGain::channel;
  const auto block = [&](const char* name) { return find(shape, name).block; };
  for (const char* name : {"encoder.0.query", "decoder.1.attention_norm_gain", "decoder.0.key_bias",
                           "decoder.1.attention_gain"}) {
    CHECK(block(name) == BlockKind::attention);
  }
  for (const char* name :
       {"decoder.0.cross_attention_norm_bias", "decoder.1.cross_query",
        "decoder.0.cross_attention_output_bias", "decoder.1.cross_attention_gain"}) {
    CHECK(block(name) == BlockKind::cross_attention);
  }
  for (const char* name : {"encoder.0.mlp_up", "decoder.0.mlp_norm_gain", "decoder.1.mlp_gain"}) {
    CHECK(block(name) == BlockKind::mlp);
  }
  for (const char* name : {"token_embedding", "decoder.final_norm_gain", "head"}) {
    CHECK(block(name) == BlockKind::none);
  }
}

TEST_CASE("Experts stand side by side along the rows, in place of the MLP") {
  Shape shape = tokens();
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.expert_ff = 10;
  const Tensor router = find(shape, "layer.1.router"), up = find(shape, "layer.0.expert_up"),
               down = find(shape, "layer.0.expert_down");
  CHECK((router.rows == 24 && router.columns == 8 && router.group == Group::router));
  CHECK((up.rows == 8 * 24 && up.columns == 10 && up.group == Group::expert_up));
  CHECK((down.rows == 8 * 10 && down.columns == 24 && down.group == Group::expert_down));
  CHECK((to_text(router.fan_in) == "n" && to_text(router.fan_out) == "E"));
  CHECK((to_text(up.fan_in) == "n" && to_text(up.fan_out) == "F_e"));
  CHECK((to_text(down.fan_in) == "F_e" && to_text(down.fan_out) == "n"));
  for (const Tensor& tensor : tensors(resolved(shape))) {
    CHECK(tensor.name.find("mlp_up") == std::string::npos);
    CHECK(tensor.name.find("mlp_up_bias") == std::string::npos);
  }
  shape.expert_ff = 0;
  CHECK(resolved(shape).expert_ff == 4 * 24);
  shape.gated_mlp = true;
  CHECK(find(shape, "layer.0.expert_gate").group == Group::expert_up);
  for (const long active : {0L, 9L}) {
    shape.experts_per_token = active;
    CHECK_THROWS_AS(resolved(shape), InvalidInput);
  }
  shape.experts = 0;
  CHECK_THROWS_AS(resolved(shape), InvalidInput);
}

TEST_CASE("Mixtral 8x7B has as many numbers as published") {
  Shape shape{.d_model = 4096, .depth = 32, .heads = 32, .kv_heads = 8, .d_ff = 14336};
  shape.vocab = 32000;
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.tied_head = shape.biases = shape.norm_bias = shape.learned_positions = false;
  shape.gated_mlp = true;
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors(resolved(shape))) {
    count += std::int64_t{tensor.rows} * tensor.columns;
  }
  CHECK(count == 46'702'792'704);
}

TEST_CASE("Fans are named by heads where they do not fill the width in either shape") {
  const auto fan_out = [](const Shape& shape, const Shape& base, const std::string& name) {
    for (const Tensor& tensor : tensors(resolved(shape), resolved(base))) {
      if (tensor.name == name) return to_text(tensor.fan_out);
    }
    return std::string("no tensor ") + name;
  };
  Shape filling = tokens();
  filling.qk_norm = QkNorm::full;
  Shape wide = filling;
  wide.head_dim = 9;  // 54 features of the heads, of a width of 24
  Shape grouped = filling;
  grouped.kv_heads = 2;
  CHECK(fan_out(filling, filling, "layer.1.query") == "n");
  CHECK(fan_out(filling, filling, "layer.1.key") == "n");
  for (const auto& [shape, base] : {std::pair{wide, filling}, {filling, wide}}) {
    for (const char* name : {"query", "value", "query_norm_gain", "key_norm_bias"})
      CHECK(fan_out(shape, base, std::string("layer.1.") + name) == "HC");
  }
  for (const auto& [shape, base] : {std::pair{grouped, filling}, {filling, grouped}}) {
    for (const char* name : {"query", "query_norm_gain"})
      CHECK(fan_out(shape, base, std::string("layer.1.") + name) == "n");
    for (const char* name : {"key", "key_norm_gain"})
      CHECK(fan_out(shape, base, std::string("layer.1.") + name) == "KC");
  }
  filling.qk_norm = QkNorm::head;
  CHECK(fan_out(filling, wide, "layer.1.query_norm_gain") == "C");
  filling.blocks = Blocks::normalized;
  wide.blocks = Blocks::normalized;
  CHECK(fan_out(filling, filling, "layer.1.qk_scale") == "n");
  CHECK(fan_out(wide, filling, "layer.1.qk_scale") == "HC");
}
