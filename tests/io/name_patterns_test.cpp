// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/name_patterns.hpp"

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "scalewise/dialect/decoder_dialects.hpp"
#include "scalewise/dialect/encoder_dialects.hpp"
#include "scalewise/dialect/gpt2_dialects.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

Shape patterned_shape(long width) {
  return Shape{
      .d_model = width, .depth = 12, .heads = 4, .context = 16, .vocab = 50, .tied_head = true};
}

/// The group whose patterns match a name; there is one.
std::size_t group_of(const io::NamePatterns& patterns, const std::string& name) {
  std::vector<std::size_t> found;
  for (std::size_t g = 0; g < patterns.groups.size(); ++g) {
    for (const io::NamePattern& pattern : patterns.groups[g].patterns) {
      const std::regex regex(io::whole_name_regex(patterns.head, pattern));
      if (std::regex_search(name, regex)) found.push_back(g);
    }
  }
  INFO(name);
  REQUIRE(found.size() == 1);
  return found.front();
}

io::NamePatterns patterns_of(const Plan& plan, const dialect::Dialect& dialect = dialect::nanogpt,
                             io::PatternStyle style = io::PatternStyle::regex) {
  return io::name_patterns(dialect::name_plan(plan, dialect), style);
}

Plan patterned_plan() {
  return make_plan(MaximalUpdate{}, {.model = patterned_shape(96), .base = patterned_shape(32)});
}

}  // namespace

TEST_CASE("A glob matches no tensor of another group") {
  // Its star matches dots: "….*.output.dense.weight" is found in "….0.attention.output.dense.weight".
  Plan plan = patterned_plan();
  for (Entry& entry : plan.entries) {
    if (entry.name.ends_with("mlp_down")) entry.learning_rate.value *= 2;
  }
  const dialect::NamedPlan named = dialect::name_plan(plan, dialect::hf_bert);
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::glob);
  CHECK(patterns.head == "*");
  for (std::size_t i = 0; i < named.factors.size(); ++i) {
    const std::string& name = named.assignment.tensors[i].name;
    std::size_t found = 0;
    for (const io::PatternGroup& group : patterns.groups) {
      for (const io::NamePattern& pattern : group.patterns) {
        for (const std::string& glob : pattern.names) {
          if (!io::glob_matches(patterns.head + glob, "module.module." + name)) continue;
          ++found;
          CHECK(group.factors.same(named.factors[i]));
        }
      }
    }
    CHECK(found >= 1);
  }
}

TEST_CASE("A glob matches whole names, with any text for its stars") {
  CHECK(io::glob_matches("a.*.b", "a.0.c.b"));
  CHECK(io::glob_matches("*a.*.b", "b.a.0.a.1.b"));
  CHECK(io::glob_matches("*", ""));
  CHECK(io::glob_matches("a[*]b[?]", "a*b?"));
  CHECK_FALSE(io::glob_matches("a.*.b", "a.0.b.c"));
  CHECK_FALSE(io::glob_matches("a[*]b", "axb"));
  CHECK_FALSE(io::glob_matches("a", ""));
  // Time by the product of the lengths.
  std::string stars;
  for (int i = 0; i < 200; ++i) stars += "*.";
  CHECK_FALSE(io::glob_matches(stars + "b", std::string(2000, '.') + "a"));
  CHECK(io::glob_matches("*.b.*.c", "x.b.b.y.c"));
  CHECK_FALSE(io::glob_matches("*.b.*.c", "x.b.c"));
  CHECK(io::glob_matches("a*", "a"));
}

TEST_CASE("Bytes of letters outside ASCII stay as they are") {
  CHECK(io::name_pattern("kopf.größe", io::PatternStyle::regex, true) == "kopf\\.größe");
}

TEST_CASE("A number in a pattern stands for a layer if it is a part of its name by itself") {
  CHECK(io::name_pattern("h.10.ln_1.weight", io::PatternStyle::regex, true) ==
        "h\\.\\d+\\.ln_1\\.weight");
  CHECK(io::name_pattern("h.10.ln_1.weight", io::PatternStyle::glob, true) == "h.*.ln_1.weight");
  CHECK(io::name_pattern("h.10.ln_1", io::PatternStyle::regex, false) == "h\\.10\\.ln_1");
  CHECK(io::name_pattern("model/h3/1", io::PatternStyle::glob, true) == "model/h3/*");
  CHECK(io::name_of_any_layer("a[0].3.b") == "a[0].*.b");
}

TEST_CASE("Patterns fit names within wrappers, after any prefix or without one") {
  const io::NamePatterns patterns = patterns_of(patterned_plan());
  const std::size_t group = group_of(patterns, "transformer.h.3.mlp.c_fc.weight");
  for (const char* name :
       {"h.3.mlp.c_fc.weight", "module.transformer.h.3.mlp.c_fc.weight",
        "_orig_mod.module.transformer.h.3.mlp.c_fc.weight",
        "transformer.h.3._checkpoint_wrapped_module.mlp.c_fc.weight",
        "_fsdp_wrapped_module.transformer.h.3._fsdp_wrapped_module._checkpoint_wrapped_module.mlp."
        "c_fc.weight",
        "net.transformer.h.3._orig_mod.mlp._orig_mod.c_fc.module.weight"}) {
    CHECK(group_of(patterns, name) == group);
  }
  const std::regex up(io::whole_name_regex(patterns.head, {{"h\\.\\d+\\.up"}, 1}));
  for (const char* name : {"h.3.up.weight", "h.x.up", "h.3.my_module.up", "graph.3.up"}) {
    CHECK_FALSE(std::regex_search(name, up));
  }
}

TEST_CASE("A name that ends as another one does has no other prefix before it") {
  Shape shape = patterned_shape(96);
  const std::vector<Extra> extras{{"norm.weight", Group::norm_gain},
                                  {"a.norm.weight", Group::mlp_up, "d_model", "64"}};
  Plan plan =
      make_plan(MaximalUpdate{}, {.model = shape, .base = patterned_shape(32), .extras = extras});
  const io::NamePatterns patterns = patterns_of(plan);
  CHECK(patterns.head.empty());
  CHECK(group_of(patterns, "module.norm.weight") != group_of(patterns, "module.a.norm.weight"));
  CHECK(group_of(patterns, "transformer.h.3._orig_mod.mlp.c_fc.weight") ==
        group_of(patterns, "transformer.h.3.mlp.c_fc.weight"));
  CHECK(patterns_of(plan, dialect::nanogpt, io::PatternStyle::glob).head.empty());
}

TEST_CASE("A pattern has the names that a model may have instead") {
  Shape shape = patterned_shape(96), base = patterned_shape(32);
  shape.tied_head = base.tied_head = true;
  const io::NamePatterns patterns =
      patterns_of(make_plan(MaximalUpdate{}, {.model = shape, .base = base}), dialect::megatron);
  const std::size_t gains = group_of(patterns, "decoder.layers.7.input_layernorm.weight");
  CHECK(group_of(patterns, "decoder.layers.7.self_attention.linear_qkv.layer_norm_weight") ==
        gains);
  CHECK(group_of(patterns, "output_layer.weight") ==
        group_of(patterns, "embedding.word_embeddings.weight"));
}

TEST_CASE("Layers share a pattern where they share their factors, and have their own elsewhere") {
  Plan plan = patterned_plan();
  const io::NamePatterns alike = patterns_of(plan);
  std::size_t patterns = 0, tensors = 0;
  for (const io::PatternGroup& group : alike.groups) {
    patterns += group.patterns.size();
    for (const io::NamePattern& pattern : group.patterns) tensors += pattern.tensors;
  }
  CHECK(patterns == 16);  // 12 in the blocks, 4 outside
  CHECK(tensors == 12 * 12 + 4);

  for (Entry& entry : plan.entries) {
    if (entry.name == "layer.1.mlp_down") entry.learning_rate.value *= 2;
  }
  const io::NamePatterns changed = patterns_of(plan);
  CHECK(changed.groups.size() == alike.groups.size() + 1);
  const std::size_t other = group_of(changed, "transformer.h.1.mlp.c_proj.weight");
  CHECK(changed.groups[other].tensors == 1);
  CHECK(changed.groups[other].patterns.at(0).names ==
        std::vector<std::string>{"h\\.1\\.mlp\\.c_proj\\.weight"});
  for (const char* layer : {"0", "10", "11"}) {
    const std::string name = std::string("transformer.h.") + layer + ".mlp.c_proj.weight";
    CHECK(group_of(changed, name) != other);
  }
  CHECK(group_of(changed, "transformer.h.1.mlp.c_fc.weight") != other);
}
