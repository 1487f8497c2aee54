// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include <string>
#include <vector>

#include "scalewise/files/read_file.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/plan/fingerprint.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"

using namespace scalewise;

namespace {

/// Plans that readers refuse or accept, in C++ and in Python (tests/python/plans.py).
const nlohmann::ordered_json& hostile_plans() {
  static const nlohmann::ordered_json corpus = nlohmann::ordered_json::parse(
      files::read_file(SCALEWISE_TEST_DIR "/data/hostile_plans.json", 1 << 20));
  return corpus;
}

/// The plan of the corpus as text, with one member replaced by a text, which may be no JSON.
std::string hostile(const std::string& pointer, const std::string& text) {
  nlohmann::ordered_json plan = hostile_plans()["plan"];
  plan[nlohmann::ordered_json::json_pointer(pointer)] = "@@";
  std::string changed = plan.dump();
  return changed.replace(changed.find("\"@@\""), 4, text);
}

bool plan_is_read(const std::string& text) {
  return scalewise::test::error_message([&] { read_plan(text); }) == "no error";
}

/// The plan without one member.
std::string plan_without(const std::string& pointer) {
  nlohmann::ordered_json plan = hostile_plans()["plan"];
  const nlohmann::ordered_json::json_pointer member(pointer);
  plan[member.parent_pointer()].erase(member.back());
  return plan.dump();
}

}  // namespace

TEST_CASE("Plans that Python refuses or accepts are refused or accepted", "[json]") {
  const nlohmann::ordered_json& corpus = hostile_plans();
  REQUIRE(plan_is_read(corpus["plan"].dump()));
  CHECK(plan::plan_fingerprint(read_plan(corpus["plan"].dump())) == corpus["fingerprint"]);
  std::size_t tried = 0;
  const auto check = [&](const nlohmann::ordered_json& item, bool accepted) {
    for (const std::string pointer : item["at"]) {
      for (const std::string text : item["to"]) {
        if (test::sanitized && tried++ % 4 != 0) continue;
        INFO(pointer << " = " << text);
        CHECK(plan_is_read(hostile(pointer, text)) == accepted);
      }
    }
  };
  for (const nlohmann::ordered_json& item : corpus["cases"]) check(item, item["accepted"]);
  for (const nlohmann::ordered_json& item : corpus["by_library"]) check(item, false);
  for (const std::string pointer : corpus["removed"]) {
    INFO(pointer);
    CHECK(!plan_is_read(plan_without(pointer)));
  }
  for (const nlohmann::ordered_json& item : corpus["texts"]) {
    INFO(item["text"]);
    CHECK(plan_is_read(item["text"]) == item["accepted"]);
  }
}

TEST_CASE("The words of a plan are those that Python knows", "[json]") {
  const auto known = [](const char* key) -> std::vector<std::string> {
    return hostile_plans()["words"][key];
  };
  const auto spelled = [](const auto& spelling) {
    std::vector<std::string> all;
    for (const auto& word : spelling) all.emplace_back(word.text);
    return all;
  };
  CHECK(known("decay") == spelled(policy::decay_words));
  CHECK(known("reference") == spelled(policy::reference_words));
  CHECK(known("distribution") == spelled(policy::distribution_words));
  CHECK(known("stack") == spelled(architecture::stack_words));
}
