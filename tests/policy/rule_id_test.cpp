// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The names of rules.

#include "scalewise/policy/rule_id.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/plan/make_plan.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;
using Catch::Matchers::ContainsSubstring;

/// The message for a name of no rule.
std::string refusal(const std::string& name) {
  try {
    return "accepted as " + policy::rule_id(name);
  } catch (const InvalidInput& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("A rule is found by the names that people type") {
  for (const auto& [name, id] : std::vector<std::pair<std::string, std::string>>{
           {"maximal-update", "maximal-update"},
           {"Maximal_Update", "maximal-update"},
           {"maximal update", "maximal-update"},
           {"mup", "maximal-update"},
           {"muP", "maximal-update"},
           {"mu-p", "maximal-update"},
           {"\xce\xbcP", "maximal-update"},  // Greek mu
           {"\xc2\xb5P", "maximal-update"},  // the micro sign
           {"\xce\x9cP", "maximal-update"},  // a capital
           {"completep", "complete-p"},
           {"CompleteP", "complete-p"},
           {"depth-\xce\xbcP", "depth-mup"},
           {"depthmup", "depth-mup"},
           {"ntk", "neural-tangent"},
           {"NTP", "neural-tangent"},
           {"sp", "standard"},
           {"PyTorch", "pytorch"},
           {"torch", "pytorch"},
           {"GPT-2", "gpt2"},
           {"glorot", "xavier"},
           {"Kaiming", "he"},
           {"nGPT", "ngpt"},
           {"nugpt", "nu-gpt"},
           {"\xce\xbdGPT", "nu-gpt"},
           {"\xce\x9dGPT-full-align", "nu-gpt-full-align"},
           {"deepnorm", "deep-norm"},
           {"DeepScaleLM", "deep-scale-lm"},
           {"ReZero", "rezero"},
           {"re-zero", "rezero"},
           {"SkipInit", "skip-init"},
           {"DS-Init", "ds-init"},
           {"layerscale", "layer-scale"},
       }) {
    INFO(name);
    CHECK(refusal(name) == "accepted as " + id);
  }
}

TEST_CASE("No two rules have a name in common") {
  std::set<std::string> names;
  for (const std::string& id : policy::rule_ids()) {
    CHECK(policy::rule_id(id) == id);
    CHECK(names.insert(scalewise::detail::folded(id)).second);
  }
  CHECK(names.size() == rules().size());
  for (const policy::RuleAlias& alias : policy::rule_aliases) {
    INFO(alias.name);
    CHECK(scalewise::detail::folded(alias.name) == alias.name);
    CHECK(policy::rule_id(alias.name) == alias.id);
    CHECK(names.insert(std::string(alias.name)).second);
  }
}

TEST_CASE("A name of no rule is refused, with a hint only where one is near") {
  CHECK(refusal("maximal-updat") ==
        "rule = maximal-updat: expected the id of a rule (hint: did you mean maximal-update?)");
  for (const char* name : {"u-mup", "fixup", "mup2", "\xce\xbc", "\xce", "--"}) {
    INFO(name);
    CHECK_THAT(refusal(name), ContainsSubstring("hint: plan --list-rules prints them"));
  }
  CHECK_THAT(refusal(""), ContainsSubstring("rule (empty)"));
}

TEST_CASE(
    "A plan says the id of its rule and of its start, by whatever names they were asked for") {
  const Plan plan = make_plan("\xce\xbcP", {.model = tokens(), .base = tokens()});
  CHECK(plan.rule == "maximal-update");
  CHECK(plan.entries == make_plan("maximal-update", {.model = tokens(), .base = tokens()}).entries);
  CHECK(make_plan("mup", {.model = tokens(), .base = tokens(), .start = "GPT-2"}).start == "gpt2");
  const std::vector<std::string> all = policy::parameter_names("neural-tangent");
  CHECK(std::count(all.begin(), all.end(), "C_query") == 1);
  CHECK(policy::parameter_names("completep") == policy::parameter_names("complete-p"));
  CHECK_THROWS_WITH(policy::parameter_names("no-such-rule"),
                    ContainsSubstring("rule = no-such-rule"));
}

TEST_CASE("What a parameter may be called is said") {
  const auto refused = [](const std::string& rule, const std::string& parameter) {
    return error_message([&] {
      make_plan(rule, {.model = tokens(), .base = tokens(), .parameters = {{parameter, 1}}});
    });
  };
  CHECK_THAT(refused("he", "x"), ContainsSubstring("(hint: it has none)"));
  CHECK_THAT(refused("complete-p", "alhpa"), ContainsSubstring("(hint: did you mean alpha?)"));
  CHECK_THAT(refused("complete-p", "zzzzzz"), ContainsSubstring("(hint: it has alpha"));
}
