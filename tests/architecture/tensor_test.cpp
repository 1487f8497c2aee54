// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Fans of the tensors that no table's numbers depend on.

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

TEST_CASE("A patch bias has the fans of its matrix") {
  Shape shape = tokens();
  shape.input = Input::patch;
  shape.patch_dim = 10;
  shape.classes = 5;
  const Tensor bias = find(shape, "patch_bias");
  CHECK(to_text(bias.fan_in) == "n_patch");
  CHECK(to_text(bias.fan_out) == "n");
  CHECK(bias.rows == 24);
  CHECK(bias.columns == 1);
}

TEST_CASE("A relative position table maps a one-hot distance to a number per head") {
  Shape shape = tokens();
  shape.relative_buckets = 4;
  const Tensor table = find(shape, "layer.0.relative_position");
  CHECK(to_text(table.fan_in) == "1");
  CHECK(to_text(table.fan_out) == "H");
  CHECK(table.rows == 4);
  CHECK(table.columns == 6);
}

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

TEST_CASE("Matrices of the MLP go from the width to the hidden one and back") {
  Shape shape = tokens();
  shape.gated_mlp = true;
  shape.d_ff = 31;
  for (const std::string name : {"mlp_up", "mlp_gate", "mlp_down"}) {
    const Tensor matrix = find(shape, "layer.1." + name);
    const bool back = name == "mlp_down";
    CHECK(to_text(matrix.fan_in) == (back ? "F" : "n"));
    CHECK(to_text(matrix.fan_out) == (back ? "n" : "F"));
    CHECK(matrix.rows == (back ? 31 : 24));
    CHECK(matrix.columns == (back ? 24 : 31));
  }
}

TEST_CASE("Matrices of the attention go from the width to the heads and back") {
  Shape shape = tokens();
  shape.head_dim = 9;  // 54 features of the heads, 18 of them of keys, of a width of 24
  shape.kv_heads = 2;
  const auto check = [&](const std::string& name, const std::string& out, long columns) {
    const Tensor matrix = find(shape, "layer.1." + name);
    CHECK(to_text(matrix.fan_in) == "n");
    CHECK(to_text(matrix.fan_out) == out);
    CHECK(matrix.rows == 24);
    CHECK(matrix.columns == columns);
  };
  check("query", "HC", 54);
  check("key", "KC", 18);
  check("value", "KC", 18);
  const Tensor back = find(shape, "layer.1.attention_output");
  CHECK(to_text(back.fan_in) == "HC");
  CHECK(to_text(back.fan_out) == "n");
  CHECK(back.rows == 54);
  CHECK(back.columns == 24);
}

TEST_CASE("The scale of queries and keys goes out to all heads") {
  Shape shape = tokens();
  shape.blocks = Blocks::normalized;
  const Tensor filling = find(shape, "layer.1.qk_scale");
  CHECK(to_text(filling.fan_in) == "1");
  CHECK(to_text(filling.fan_out) == "n");
  CHECK(filling.rows == 24);
  shape.head_dim = 9;  // 54 features of the heads, of a width of 24
  const Tensor wide = find(shape, "layer.1.qk_scale");
  CHECK(to_text(wide.fan_in) == "1");
  CHECK(to_text(wide.fan_out) == "HC");
  CHECK(wide.rows == 54);
}

TEST_CASE("A norm of queries or keys goes out to a head, or to all of them") {
  Shape shape = tokens();
  shape.kv_heads = 3;
  shape.qk_norm = QkNorm::head;
  for (const char* name : {"layer.1.query_norm_gain", "layer.1.key_norm_bias"}) {
    CHECK(to_text(find(shape, name).fan_in) == "1");
    CHECK(to_text(find(shape, name).fan_out) == "C");
    CHECK(find(shape, name).rows == 4);
  }
  shape.qk_norm = QkNorm::full;
  CHECK(to_text(find(shape, "layer.0.query_norm_gain").fan_out) == "n");
  CHECK(find(shape, "layer.0.query_norm_gain").rows == 24);
  CHECK(to_text(find(shape, "layer.0.key_norm_gain").fan_out) == "KC");
  CHECK(find(shape, "layer.0.key_norm_gain").rows == 12);
  CHECK(find(shape, "layer.0.key_norm_gain").group == Group::norm_gain);
  CHECK(find(shape, "layer.0.key_norm_bias").group == Group::norm_bias);
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

TEST_CASE("A norm after a branch has the vectors of one before it") {
  Shape shape = tokens();
  shape.branch_norm = true;
  for (const char* name : {"layer.1.attention_branch_norm_gain", "layer.0.mlp_branch_norm_bias"}) {
    CHECK(to_text(find(shape, name).fan_in) == "1");
    CHECK(to_text(find(shape, name).fan_out) == "n");
    CHECK(find(shape, name).rows == 24);
  }
  CHECK(find(shape, "layer.0.mlp_branch_norm_gain").group == Group::norm_gain);
}

TEST_CASE("Fans are named by heads where they do not fill the width in either shape") {
  const auto fan_out = [](const Shape& shape, const Shape& base, const std::string& name) {
    for (const Tensor& tensor : tensors(resolved(shape), resolved(base))) {
      if (tensor.name == name) return to_text(tensor.fan_out);
    }
    return std::string("no tensor ") + name;
  };
  const Shape filling = tokens();
  Shape wide = tokens();
  wide.head_dim = 9;  // 54 features of the heads, of a width of 24
  Shape grouped = tokens();
  grouped.kv_heads = 2;
  CHECK(fan_out(filling, filling, "layer.1.query") == "n");
  CHECK(fan_out(filling, filling, "layer.1.key") == "n");
  for (const auto& [shape, base] : {std::pair{wide, filling}, {filling, wide}}) {
    CHECK(fan_out(shape, base, "layer.1.query") == "HC");
    CHECK(fan_out(shape, base, "layer.1.value") == "HC");
  }
  for (const auto& [shape, base] : {std::pair{grouped, filling}, {filling, grouped}}) {
    CHECK(fan_out(shape, base, "layer.1.query") == "n");
    CHECK(fan_out(shape, base, "layer.1.key") == "KC");
  }
}
