// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/messages/folded.hpp"

#include <string>
#include <vector>

#include "scalewise/messages/problems.hpp"
#include "support/catch.hpp"

using Lines = std::vector<std::string>;
using scalewise::messages::folded;

namespace {

/// The same line for several layers: % is the number.
Lines of_layers(const std::string& line, const std::vector<int>& layers) {
  Lines lines;
  for (const int layer : layers) {
    std::string& text = lines.emplace_back(line);
    for (std::size_t at = 0; (at = text.find('%', at)) != std::string::npos;) {
      text.replace(at, 1, std::to_string(layer));
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("A problem of all layers is one line") {
  CHECK(folded({}).empty());
  CHECK(folded(of_layers("layer.%.query: rate = 1: expected 0.5", {0, 1, 2, 3})) ==
        Lines{"layer.*.query (4 tensors): rate = 1: expected 0.5"});
  // A code base's own names, and names in the text.
  CHECK(folded(of_layers("transformer.h.%.attn.c_attn.weight: layer.%.query and layer.%.key are "
                         "parts of it",
                         {0, 1})) ==
        Lines{"transformer.h.*.attn.c_attn.weight (2 tensors): layer.*.query and layer.*.key are "
              "parts of it"});
  CHECK(folded(of_layers("blk.%.ffn_gate.weight: [3072, 768]: expected [2048, 768]", {0, 1, 2})) ==
        Lines{"blk.*.ffn_gate.weight (3 tensors): [3072, 768]: expected [2048, 768]"});
  CHECK(folded(of_layers("%.weight: missing", {0, 1})) == Lines{"*.weight (2 tensors): missing"});
  CHECK(folded(of_layers("params/block/%/w: missing", {0, 1})) ==
        Lines{"params/block/*/w (2 tensors): missing"});
  CHECK(folded(of_layers("layer.%.query has no rows", {0, 1})) ==
        Lines{"layer.*.query has no rows (2 tensors)"});
}

TEST_CASE("A problem of some layers says which") {
  CHECK(folded(of_layers("layer.%.key: frozen", {2, 7, 8, 9, 11})) ==
        Lines{"layer.*.key (5 tensors, * = 2, 7-9, 11): frozen"});
  CHECK(folded(of_layers("layer.%.key: frozen", {0, 1, 10, 11, 2, 3})) ==  // as texts are sorted
        Lines{"layer.*.key (6 tensors, * = 0-3, 10-11): frozen"});
  CHECK(folded(of_layers("layer.%.key: frozen", {1, 2})) ==
        Lines{"layer.*.key (2 tensors, * = 1-2): frozen"});
  CHECK(folded(of_layers("layer.%.key: frozen", {7})) == Lines{"layer.7.key: frozen"});
}

TEST_CASE("Numbers that all lines share, and those that are not layers, stay") {
  // T5's own names: the second number says which part of the block it is.
  CHECK(folded(of_layers("decoder.block.%.layer.1.EncDecAttention.q.weight: missing", {0, 1})) ==
        Lines{"decoder.block.*.layer.1.EncDecAttention.q.weight (2 tensors): missing"});
  // Experts of several layers.
  CHECK(folded({"layers.0.experts.0.w1: missing", "layers.0.experts.1.w1: missing",
                "layers.1.experts.0.w1: missing", "layers.1.experts.1.w1: missing"}) ==
        Lines{"layers.*.experts.*.w1 (4 tensors): missing"});
  for (const Lines& lines :
       {Lines{"w1: missing", "w2: missing"}, Lines{"ln_1.weight: missing", "ln_2.weight: missing"},
        Lines{"a.b: rate = 0.5: expected 1", "a.b: rate = 0.7: expected 1"},
        Lines{"a.b: rate = 1.2e-5: expected 1", "a.b: rate = 3.2e-5: expected 1"},
        Lines{"a.b: [3, 4]: expected [4]", "a.b: [4, 4]: expected [4]"},
        Lines{"a.b: rate = 1/m_N", "a.b: rate = 2/m_N"}, Lines{"layer.0.query: missing"},
        Lines{"a.0é: missing", "a.1é: missing"}}) {
    CHECK(folded(lines) == lines);
  }
  // Nothing comes before what it followed.
  CHECK(folded({"layer.0.b: x", "layer.0.a: x", "layer.1.b: x", "z: y"}) ==
        Lines{"layer.*.b (2 tensors): x", "layer.0.a: x", "z: y"});
  CHECK(folded({"a parameter of shape [3]: unknown", "a parameter of shape [3]: unknown"}) ==
        Lines{"a parameter of shape [3] (2 tensors): unknown"});
}

TEST_CASE("An error about tensors has a line per problem") {
  CHECK_NOTHROW(scalewise::messages::require_none("wrong:", {}));
  CHECK_THROWS_WITH(
      scalewise::messages::require_none("wrong:", of_layers("h.%.w: missing", {0, 1, 2})),
      "wrong:\n  h.*.w (3 tensors): missing");
}
