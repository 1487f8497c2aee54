// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/io/plan_json.hpp"

#include <string>

#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"
#include "support/told.hpp"

using namespace scalewise;
using OrderedJson = nlohmann::ordered_json;

namespace {

Shape small_shape(bool patch) {
  Shape shape{.input = patch ? Input::patch : Input::token, .d_model = 48, .depth = 3, .heads = 6};
  shape.kv_heads = patch ? 6 : 2;
  shape.head_dim = 7;
  shape.d_ff = 100;
  shape.context = 16;
  if (patch) {
    shape.patch_dim = 12;
    shape.classes = 10;
  } else {
    shape.vocab = 101;
  }
  return shape;
}

Plan small_plan() {
  return make_plan(MaximalUpdate{}, {.model = small_shape(false), .base = small_shape(false)});
}

/// The message with which reading fails, after one change to a good plan.
template <class Change>
std::string complaint(Change&& change) {
  OrderedJson plan = to_json(small_plan());
  change(plan);
  return scalewise::test::error_message([&] { read_plan(plan.dump()); });
}

}  // namespace

TEST_CASE("A plan reads back equal, for every rule", "[json]") {
  for (const Rule& rule : rules()) {
    int read = 0;
    for (const bool patch : {false, true}) {
      Shape shape = small_shape(patch);
      Shape base = shape;
      base.d_model = 31;  // so that ratios are not short decimals
      base.depth = 7;
      std::optional<Plan> plan;
      try {
        plan = make_plan(test::told(rule), {.model = shape, .base = base});
      } catch (const InvalidInput& error) {
        CHECK(error.field() == "input");
        continue;
      }
      const std::string text = to_json(*plan).dump(1);
      const Plan again = read_plan(text);
      CHECK(again == *plan);
      CHECK(to_json(again).dump(1) == text);
      ++read;
      if (test::sanitized) break;
    }
    INFO(rule.id);
    CHECK(read > 0);  // some take patches only, some tokens only
  }
}

TEST_CASE("Doubles survive to the last bit", "[json]") {
  Plan plan = small_plan();
  plan.entries[0].init_variance.value = 0.1 + 0.2;
  plan.entries[1].learning_rate.value = 4.9406564584124654e-324;
  plan.entries[2].epsilon.value = 1.7976931348623157e307;
  CHECK(read_plan(to_json(plan).dump()) == plan);
}

TEST_CASE("An entry that has another optimizer than its plan says so", "[json]") {
  Plan plan = make_plan("standard", {.model = small_shape(false)});
  plan.entries.front().optimizer = sgd;
  const OrderedJson json = to_json(plan);
  CHECK(json["entries"][0]["optimizer"] == "sgd");
  CHECK(!json["entries"][1].contains("optimizer"));
  CHECK(read_plan(json.dump()) == plan);
}

TEST_CASE("Extra tensors read back, and must be those of the entries", "[json]") {
  const Plan plan = make_plan(
      MaximalUpdate{}, {.model = small_shape(false),
                        .base = small_shape(false),
                        .extras = {{"layer.*.q_gain", Group::norm_gain, "head_dim"},
                                   {"adapter_bias", Group::hidden_bias, "64", "1", "d_model"}}});
  const OrderedJson json = to_json(plan);
  CHECK(read_plan(json.dump()) == plan);
  CHECK_FALSE(to_json(small_plan()).contains("extra"));
  const auto complaint_of = [&](auto&& change) {
    OrderedJson changed = json;
    change(changed);
    return scalewise::test::error_message([&] { read_plan(changed.dump()); });
  };
  CHECK(complaint_of([](OrderedJson& j) { j.erase("extra"); }).find("no further entry") !=
        std::string::npos);
  CHECK(complaint_of([](OrderedJson& j) { j["extra"][0]["rows"] = "d_model"; }).find("rows") !=
        std::string::npos);
  CHECK(complaint_of([](OrderedJson& j) {
          j["extra"][0]["group"] = "gain";
        }).find("extra[0].group") != std::string::npos);
  CHECK(complaint_of([](OrderedJson& j) {
          j["extra"][0]["role"] = "gain";
        }).find("extra[0].role") != std::string::npos);
}

TEST_CASE("A plan that is not one is refused with one message", "[json]") {
  CHECK(complaint([](OrderedJson&) {}) == "no error");
  CHECK(complaint([](OrderedJson& j) { j["schema"] = "scalewise.plan/2"; }) ==
        "plan.schema = scalewise.plan/2: expected scalewise.plan/1 (hint: this version reads no "
        "other)");
  CHECK(complaint([](OrderedJson& j) { j.erase("schema"); }) ==
        "plan.schema (missing): expected a value");
  CHECK(complaint([](OrderedJson& j) { j["optimiser"] = 1; }) ==
        "plan.optimiser = 1: expected a known key (hint: did you mean optimizer?)");
  CHECK(complaint([](OrderedJson& j) { j["optimizer"] = "adam"; }) ==
        "plan.optimizer = adam: expected " +
            messages::listed(policy::names_of(policy::known_optimizers)) +
            " (hint: did you mean adamw?)");
  CHECK(complaint([](OrderedJson& j) { j["entries"][3].erase("name"); }) ==
        "plan.entries[3].name (missing): expected a value");
  CHECK(complaint([](OrderedJson& j) { j["entries"][3]["rows"] = 1.5; }) ==
        "plan.entries[3].rows = 1.5: expected a whole number");
  CHECK(complaint([](OrderedJson& j) { j["entries"][3]["name"] = j["entries"][2]["name"]; }) ==
        "plan.entries[3].name = layer.0.attention_norm_gain: expected "
        "layer.0.attention_norm_bias, as the shape implies");
  CHECK(complaint([](OrderedJson& j) { j["entries"][0]["init_variance"]["value"] = -1; }) ==
        "plan.entries[0].init_variance.value = -1: expected 0 or more");
  CHECK(complaint([](OrderedJson& j) { j["entries"][0]["init_variance"]["value"] = "1"; }) ==
        "plan.entries[0].init_variance.value = \"1\": expected a number");
  CHECK(complaint([](OrderedJson& j) { j["entries"][0]["group"] = "tokens_embedding"; }) ==
        "plan.entries[0].group = tokens_embedding: expected the id of a group (hint: did you mean "
        "token_embedding?)");
  CHECK(complaint([](OrderedJson& j) { j["entries"] = 3; }) ==
        "plan.entries = 3: expected an array");
  CHECK(complaint([](OrderedJson& j) { j["shape"]["depth"] = true; }) ==
        "plan.shape.depth = true: expected a whole number");
  CHECK(complaint([](OrderedJson& j) { j["model"] = nullptr; }) ==
        "plan.model = null: expected an object");
}

TEST_CASE("Text that is no JSON is refused with one message", "[json]") {
  const std::string good = to_json(small_plan()).dump();
  CHECK_THROWS_AS(read_plan(good.substr(0, good.size() / 2)), InvalidInput);
  CHECK_THROWS_AS(read_plan(""), InvalidInput);
  CHECK_THROWS_AS(read_plan("[]"), InvalidInput);
  CHECK_THROWS_AS(read_plan(std::string(100000, '[')), InvalidInput);
  CHECK_THROWS_AS(read_plan("{\"schema\": 1e999}"), InvalidInput);
}

TEST_CASE("The factors of the code that a plan is for read back, and old plans have none") {
  const Plan plan = plan::with_code(small_plan(), {.scores = 1,
                                                   .embedding = sqrt(symbols::n),
                                                   .logits = 0.5,
                                                   .tied_logits = 0.25,
                                                   .branch = 2});
  REQUIRE(plan.model.code.has_value());
  const Plan read = read_plan(to_json(plan).dump());
  CHECK(read == plan);
  CHECK(to_json(plan)["model"]["code"]["embedding_multiplier"]["formula"] == "√m_N");
  CHECK_FALSE(to_json(small_plan())["model"].contains("code"));
  CHECK(complaint([](OrderedJson& json) {
          json["model"]["code"] = json["model"];
        }).find("plan.model.code") != std::string::npos);
}
