// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Dialects that extend another by lines of their own.

#include <string>
#include <string_view>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/dialect/gpt2_dialects.hpp"
#include "scalewise/dialect/known_entries.hpp"
#include "support/catch.hpp"
#include "support/small_shapes.hpp"

using namespace scalewise;
using namespace scalewise::dialect;
using scalewise::test::biasless_gpt;

namespace {

/// nanoGPT's lines after one more.
class NanoGptAnd {
 public:
  explicit NanoGptAnd(const TensorPattern& line) : patterns_{line} {
    patterns_.insert(patterns_.end(), nanogpt.patterns.begin(), nanogpt.patterns.end());
  }

  Dialect dialect() const {
    Dialect own = nanogpt;
    own.patterns = patterns_;
    return own;
  }

 private:
  std::vector<TensorPattern> patterns_;
};

}  // namespace

TEST_CASE("A line of one's own that no tensor can be like is told, whatever the model") {
  Shape s = biasless_gpt();
  s.kv_heads = 2;
  const auto problem = [&](const TensorPattern& line) {
    const NanoGptAnd own(line);
    const Assignment usual = usual_tensors(own.dialect(), s);
    REQUIRE_FALSE(usual.problems.empty());
    CHECK(classify(own.dialect(), s, {}).problems.front() == usual.problems.front());
    return usual.problems.front();
  };
  CHECK(problem({"w", "layer.0.query layer.0.key layer.0.query"}) == "w: has layer.0.query twice");
  CHECK(
      problem({"w", "layer.0.query token_embedding"}) ==
      "w: layer.0.query and token_embedding cannot be parts of one tensor, as their sizes differ");
  CHECK(problem({"w", "layer.0.mlp_up layer.0.mlp_down"}) ==
        "w: layer.0.mlp_up and layer.0.mlp_down cannot be parts of one tensor, as their sizes "
        "differ");
  CHECK(problem({"w", "layer.0.query", Packing::after_two}) ==
        "w: two rows are skipped in tables alone, and not in layer.0.query");
  CHECK(problem({"transformer.wpe.weight", "token_embedding"}) ==
        "transformer.wpe.weight: is both token_embedding and position_embedding");
  s.d_ff = 41;
  CHECK(problem({"w", "layer.0.mlp_up", Packing::key_groups}) ==
        "w: layer.0.mlp_up cannot be cut into groups of key heads");
  CHECK(problem({"w", "layer.0.mlp_up layer.0.query", Packing::alternating}) ==
        "w: layer.0.mlp_up and layer.0.query cannot take turns, as one has more rows");
}

TEST_CASE("A table may begin after two rows that no token uses") {
  const NanoGptAnd own({"positions", "position_embedding", Packing::after_two});
  const Assignment usual = usual_tensors(own.dialect(), biasless_gpt());
  CHECK(usual.problems.empty());
  CHECK(usual.tensors.front().shape == std::vector<std::int64_t>{18, 24});
  CHECK(usual.tensors.front().parts.front().select == std::vector<AxisRuns>{{0, {{2, 16}}}});
  CHECK(usual.tensors.front().padding == std::vector<AxisRuns>{{0, {{0, 2}}}});
}

TEST_CASE("The line of an alias may stand before that of its owner") {
  const NanoGptAnd own({"tied.weight", "token_embedding", Packing::alias});
  const Assignment usual = usual_tensors(own.dialect(), biasless_gpt());
  CHECK(usual.problems.empty());
  CHECK(usual.tensors.size() == usual_tensors(nanogpt, biasless_gpt()).tensors.size());
  REQUIRE_FALSE(usual.aliases.empty());
  CHECK(usual.aliases.front().name == "tied.weight");
  CHECK(usual.aliases.front().of == "transformer.wte.weight");
}

TEST_CASE("No entry has two of the usual tensors") {
  const NanoGptAnd own({"key.{}", "layer.{}.key"});
  const Assignment usual = usual_tensors(own.dialect(), biasless_gpt());
  REQUIRE(usual.problems.size() == 2);  // of two layers
  CHECK(usual.problems[0] ==
        "transformer.h.0.attn.c_attn.weight: has layer.0.key, as key.0 has already");
}

TEST_CASE("An extra tensor has a name of its own") {
  const Extra extra{"transformer.wte.weight", Group::mlp_up, "d_model", "64"};
  const Assignment usual = usual_tensors(nanogpt, biasless_gpt(), {extra});
  REQUIRE(usual.problems.size() == 1);
  CHECK(usual.problems[0] ==
        "transformer.wte.weight: is both token_embedding and transformer.wte.weight");
}

TEST_CASE("Each entry of the dialects is known, and a misspelled one is not") {
  for (const Dialect* dialect : all_dialects) {
    for (const TensorPattern& line : dialect->patterns) {
      for (std::string_view entry : scalewise::dialect::detail::words_of(line.entries)) {
        INFO(dialect->id << ": " << entry);
        if (entry.starts_with('!')) entry.remove_prefix(1);
        CHECK((entry == "-" || known_entries().contains(without_layer(entry))));
      }
    }
  }
  CHECK_FALSE(known_entries().contains("token_embeding"));
  CHECK(without_layer("decoder.{1}.cross_query") == "decoder.{}.cross_query");
  CHECK(without_layer("layer.12.mlp_up_bias") == "layer.{}.mlp_up_bias");
  CHECK_FALSE(known_entries().contains(without_layer("layer.x.query")));
}
