// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/name_patterns.hpp"

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "scalewise/dialect/encoder_dialects.hpp"
#include "scalewise/dialect/gpt2_dialects.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

Shape patterned_shape(long width) {
  Shape s;
  s.d_model = width;
  s.depth = 12;
  s.heads = 4;
  s.context = 16;
  s.vocab = 50;
  s.tied_head = true;
  return s;
}

/// The group whose patterns match a name; there is one.
std::size_t group_of(const std::vector<PatternGroup>& groups, const std::string& name) {
  std::vector<std::size_t> found;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& pattern : groups[g].patterns) {
      if (std::regex_search(name, std::regex(pattern))) found.push_back(g);
    }
  }
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace

TEST_CASE("A glob matches no tensor of another group") {
  // Its star matches dots: "….*.output.dense.weight" is found in "….0.attention.output.dense.weight".
  Plan plan = make_plan<MaximalUpdate, adamw>(patterned_shape(96), patterned_shape(32));
  for (Entry& entry : plan.entries) {
    if (entry.name.ends_with("mlp_down")) entry.learning_rate.value *= 2;
  }
  const dialect::NamedPlan named = dialect::name_plan(plan, dialect::hf_bert);
  const std::vector<PatternGroup> groups = pattern_groups(named, PatternStyle::glob);
  for (std::size_t i = 0; i < named.assignment.tensors.size(); ++i) {
    const std::string& name = named.assignment.tensors[i].name;
    INFO(name);
    std::size_t found = 0;
    for (const PatternGroup& group : groups) {
      for (const std::string& pattern : group.patterns) {
        if (!glob_matches(pattern, name)) continue;
        ++found;
        CHECK(group.factors.same(named.factors[i]));
      }
    }
    CHECK(found >= 1);
  }
  CHECK(glob_matches("a.*.b", "a.0.c.b"));
  CHECK_FALSE(glob_matches("a.*.b", "a.0.b.c"));
  CHECK(glob_matches("*.b.*.c", "x.b.b.y.c"));
  CHECK_FALSE(glob_matches("*.b.*.c", "x.b.c"));
  CHECK(glob_matches("a*", "a"));
  CHECK_FALSE(glob_matches("a", ""));
}

TEST_CASE("A glob of many stars takes no longer than its lengths multiplied") {
  std::string glob, name;
  for (int i = 0; i < 40; ++i) {
    glob += "*.";
    name += "1.";
  }
  CHECK_FALSE(glob_matches(glob + "b", name + "a"));  // would take years star by star
  CHECK(glob_matches(glob + "b", name + "b"));
}

TEST_CASE("Bytes of letters outside ASCII stay as they are") {
  CHECK(name_pattern("kopf.größe", PatternStyle::regex, true) == "^kopf\\.größe$");
}

TEST_CASE("Layers share a pattern where they share their factors, and have their own elsewhere") {
  Plan plan = make_plan<MaximalUpdate, adamw>(patterned_shape(96), patterned_shape(32));
  const auto groups_of = [](const Plan& of) {
    return pattern_groups(dialect::name_plan(of, dialect::nanogpt), PatternStyle::regex);
  };
  const std::vector<PatternGroup> alike = groups_of(plan);
  std::size_t patterns = 0;
  for (const PatternGroup& group : alike) patterns += group.patterns.size();
  CHECK(patterns == 16);  // 12 in the blocks, 4 outside

  for (Entry& entry : plan.entries) {
    if (entry.name == "layer.1.mlp_down") entry.learning_rate.value *= 2;
  }
  const std::vector<PatternGroup> groups = groups_of(plan);
  CHECK(groups.size() == alike.size() + 1);
  const std::size_t other = group_of(groups, "transformer.h.1.mlp.c_proj.weight");
  CHECK(groups[other].tensors == 1);
  CHECK(groups[other].patterns ==
        std::vector<std::string>{"^transformer\\.h\\.1\\.mlp\\.c_proj\\.weight$"});
  for (const char* layer : {"0", "10", "11"}) {
    const std::string name = std::string("transformer.h.") + layer + ".mlp.c_proj.weight";
    CHECK(group_of(groups, name) != other);
  }
  CHECK(group_of(groups, "transformer.h.1.mlp.c_fc.weight") != other);
}
