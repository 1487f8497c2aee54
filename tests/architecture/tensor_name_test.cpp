// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/architecture/tensor_name.hpp"

#include <string>

#include "support/catch.hpp"

using namespace scalewise;

TEST_CASE("A tensor's name is a stack, a layer and a part, and is read as it is printed") {
  const struct {
    std::string text;
    architecture::TensorName name;
    std::string prefix;
  } table[] = {
      {"head", {Stack::none, -1, "head"}, ""},
      {"layer.0.query", {Stack::main, 0, "query"}, "layer.0."},
      {"layer.12.mlp.output", {Stack::main, 12, "mlp.output"}, "layer.12."},
      {"encoder.3.mlp_up_bias", {Stack::encoder, 3, "mlp_up_bias"}, "encoder.3."},
      {"decoder.10.cross_query", {Stack::decoder, 10, "cross_query"}, "decoder.10."},
      {"encoder.final_norm_gain", {Stack::encoder, -1, "final_norm_gain"}, "encoder."},
      {"decoder.embedding", {Stack::decoder, -1, "embedding"}, "decoder."},
      {"decoder.block.3.query", {Stack::decoder, -1, "block.3.query"}, "decoder."},
      {"layer.3", {Stack::none, -1, "layer.3"}, ""},
      {"layer.", {Stack::none, -1, "layer."}, ""},
      {"layer..query", {Stack::none, -1, "layer..query"}, ""},
      {"layer.x.query", {Stack::none, -1, "layer.x.query"}, ""},
      {"layer.3x.query", {Stack::none, -1, "layer.3x.query"}, ""},
      {"layer.-1.query", {Stack::none, -1, "layer.-1.query"}, ""},
      {"layer.99999999999.query", {Stack::none, -1, "layer.99999999999.query"}, ""},
      {"layers.3.query", {Stack::none, -1, "layers.3.query"}, ""},
      {"", {Stack::none, -1, ""}, ""},
  };
  for (const auto& [text, name, prefix] : table) {
    CAPTURE(text);
    CHECK(architecture::tensor_name(text) == name);
    CHECK(to_string(name) == text);
    CHECK(name.prefix() == prefix);
  }
}

TEST_CASE("A tensor of the main stack that is in no layer has no prefix") {
  CHECK(to_string(architecture::TensorName{Stack::main, -1, "final_norm_gain"}) ==
        "final_norm_gain");
}

TEST_CASE("In the name of a tensor of one's own a star stands for the layer") {
  CHECK(to_string(architecture::TensorName{Stack::none, 7, "model.layers.*.adapter.w"}) ==
        "model.layers.7.adapter.w");
  CHECK(to_string(architecture::TensorName{Stack::none, -1, "model.layers.*.adapter.w"}) ==
        "model.layers.*.adapter.w");
}
