// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Every number, word, entry and key of a plan's JSON changed, one at a time: what contradicts the
// shape is refused, and what is accepted can be used.

#include "scalewise/plan/check_plan.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/scales.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/propagation/fold.hpp"
#include "scalewise/propagation/model.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/sanitized.hpp"
#include "support/small_shapes.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using Json = nlohmann::ordered_json;
using test::error_message;

/// Other numbers, words of every kind that a plan has, and other types.
std::vector<Json> other_values(const std::string& path, const Json& value) {
  if (value.is_boolean()) return {!value.get<bool>(), nullptr};
  if (value.is_null()) return {0, true};
  if (value.is_number_integer()) {
    const long n = value.get<long>();
    return {n + 1, n - 1, -n - 2, 1L << 40};
  }
  if (value.is_number()) {
    const double x = value.get<double>();
    return {-x - 1, std::nextafter(x, 1e9), 1e308};
  }
  for (const char* word : {".name", ".group", ".stack", ".distribution", ".input", ".blocks",
                           ".residual_gain", ".symbol", ".reference"}) {
    if (!path.ends_with(word)) continue;
    return {"", "x", "main", "decoder", "query", "norm_gain", "patch", "normalized", "scalar"};
  }
  return {};  // texts for people
}

/// Calls visit(path) for every place of a JSON document after one change, and undoes the change.
void for_each_change(Json& json, const std::string& path,
                     const std::function<void(std::string)>& visit) {
  const Json good = json;
  if (json.is_structured()) {
    const std::string own = json.contains("symbol") && json["symbol"].is_string()
                                ? path + "(" + json["symbol"].get<std::string>() + ")"
                                : path;
    std::vector<std::pair<std::string, Json*>> members;
    if (json.is_object()) {
      for (auto& [key, value] : json.items()) members.emplace_back(own + "." + key, &value);
    } else {
      for (auto& value : json) members.emplace_back(path + "[]", &value);
    }
    for (const auto& [name, value] : members) for_each_change(*value, name, visit);
    if (good.contains("formula")) return;  // one function reads them all
    if (json.is_object()) {
      for (const auto& [key, value] : good.items()) {
        json.erase(key);
        visit(path + " without " + key);
        json = good;
      }
    } else {
      for (std::size_t i = 0; i < good.size(); ++i) {
        json.erase(i);
        visit(path + " shorter");
        json = good;
        json.insert(json.begin() + static_cast<long>(i), good[i]);
        visit(path + " longer");
        json = good;
        if (i + 1 < good.size() && good[i] != good[i + 1]) {
          std::swap(json[i], json[i + 1]);
          visit(path + " swapped");
          json = good;
        }
      }
    }
    return;
  }
  for (const Json& value : other_values(path, good)) {
    if (value == good) continue;
    json = value;
    visit(path);
  }
  json = good;
}

/// Whether a place holds what the rule, not the shape, decides: planned numbers, texts, the rule.
bool is_free(const std::string& path) {
  for (const char* start : {"plan.rule.", "plan.optimizer", "plan.decay", "plan.base",
                            "plan.warnings", "plan without warnings"}) {
    if (path.starts_with(start)) return true;
  }
  for (const char* end : {".formula",           ".latex",           ".source",
                          ".meaning",           ".distribution",    "init_variance.value",
                          "init_mean.value",    "multiplier.value", "learning_rate.value",
                          "weight_decay.value", "epsilon.value",    "attention_scale.value",
                          "skip.value",         "branch.value",     ".symbols shorter",
                          ".symbols longer",    ".symbols swapped", ".where shorter",
                          ".where longer",      ".where swapped",   ".parameters[].value",
                          ".parameters[].name", ".symbol",          "(r).value",
                          "((1-p)).value",      "((1-β²)).value"}) {
    if (path.ends_with(end)) return true;
  }
  return false;
}

/// All that reads a plan and needs no Eigen.
void use(const Plan& plan) {
  const auto quietly = [](auto&& call) {
    try {
      call();
    } catch (const InvalidInput&) {
    }
  };
  quietly([&] { plan_table(plan, true); });
  quietly([&] { flat_table({plan}); });
  quietly([&] { check::scales_of({{1, plan}, {2, plan}}); });
  for (const auto placement : {NormPlacement::pre, NormPlacement::post}) {
    quietly([&] { propagation::fold_residuals(plan, placement); });
  }
  for (const Stack stack : {Stack::main, Stack::encoder, Stack::decoder}) {
    quietly([&] { propagation::plan_layers(plan, {.length = 3}, stack); });
  }
  quietly([&] { propagation::predict(plan, {.length = 3}, propagation::Data{}); });
  quietly([&] { propagation::predict_encoder_decoder(plan, {.length = 3}, {}, {}, {}); });
}

struct Count {
  int changes = 0;
  int refused = 0;
  int accepted = 0;
};

/// `own` are the beginnings of places where this shape has a field that no tensor depends on.
Count change_all(const Plan& plan, const std::vector<std::string>& own) {
  Count count;
  Json json = Json::parse(to_json(plan).dump());
  REQUIRE(plan_from_json(json) == plan);
  for_each_change(json, "plan", [&](const std::string& path) {
    if (test::sanitized && count.changes++ % 21 != 0) return;
    try {
      const Plan read = plan_from_json(json);
      if (count.accepted % 8 == 0) use(read);
    } catch (const InvalidInput&) {
      ++count.refused;
      return;
    }
    ++count.accepted;
    bool expected = is_free(path);
    for (const std::string& place : own) expected = expected || path.starts_with(place);
    INFO(path);
    CHECK(expected);
  });
  return count;
}

Plan tokens(long layers = 2) {
  Shape shape = test::token_shape();
  shape.biases = false;
  shape.depth = layers;
  Shape base = shape;
  base.d_model = 7;
  base.depth = 1;
  return make_plan(CompleteP{}, {.model = shape, .base = base});
}

}  // namespace

TEST_CASE("A plan with anything changed is refused or used as it is", "[plan]") {
  const std::vector<std::string> of_tokens{"plan.shape.patch_dim", "plan.shape.classes",
                                           "plan.shape.class_token", "plan.shape.iterations"};
  const std::vector<std::string> of_shallow{"plan.shape."};  // it reads few of them
  Shape small = test::token_shape();
  small.depth = 1;
  small.biases = small.learned_positions = false;
  Count all;
  const auto change = [&](const Plan& plan, const std::vector<std::string>& own) {
    const Count now = change_all(plan, own);
    all.refused += now.refused;
    all.accepted += now.accepted;
  };
  change(tokens(1), of_tokens);
  auto without_positions = of_tokens;
  without_positions.emplace_back("plan.shape.context");
  change(make_plan(test::told(DeepScaleLM{.k = 0.5}), {.model = small}), without_positions);
  small.encoder_depth = 1;
  change(make_plan(Xavier{}, {.model = small, .optimizer = sgd}), without_positions);
  Shape patches = test::patch_shape();
  patches.depth = 1;
  change(make_plan(ShallowHe{}, {.model = patches, .optimizer = sgd}), of_shallow);
  const int share = test::sanitized ? 21 : 1;
  CHECK(all.refused > 6000 / share);  // of 7602 changes
  CHECK(all.accepted > 700 / share);
}

TEST_CASE("The first difference is named", "[plan]") {
  const auto message = [](auto&& change) {
    Plan plan = tokens();
    change(plan);
    return error_message([&] { check_plan(plan, "p.json"); });
  };
  CHECK(message([](Plan&) {}) == "no error");
  CHECK(message([](Plan& p) { p.entries[4].columns = 65; }) ==
        "p.json.entries[4].columns = 65: expected 24, as the shape implies");
  CHECK(message([](Plan& p) { p.entries[4].fan_in = 15; }) ==
        "p.json.entries[4].fan_in = 15: expected 14, as the shape implies");
  CHECK(message([](Plan& p) { p.entries[2].layer = 7; }) ==
        "p.json.entries[2].layer = 7: expected 0, as the shape implies");
  CHECK(message([](Plan& p) { p.entries.clear(); }) ==
        "p.json.entries[0] (missing): expected token_embedding, as the shape implies");
  CHECK(message([](Plan& p) { p.entries.push_back(p.entries.back()); }) ==
        "p.json.entries[25] = one more: expected no further entry, as the shape implies");
  CHECK(message([](Plan& p) { p.model.residuals.pop_back(); }) ==
        "p.json.model.residuals[1] (missing): expected main layer 1, as the shape implies");
  CHECK(message([](Plan& p) { p.model.residuals[1].layer = 1000; }) ==
        "p.json.model.residuals[1].layer = 1000: expected 1, as the shape implies");
  CHECK(message([](Plan& p) { p.model.residuals.resize(3); }) ==
        "p.json.model.residuals[2] = one more: expected no further layer, as the shape implies");
  CHECK(message([](Plan& p) { p.model.attention_scale.value = std::nan(""); }) ==
        "p.json.model.attention_scale = nan: expected a finite number");
  CHECK(message([](Plan& p) {
          p.model.code = plan::code_of(p);
          p.model.code->branch.value = 0;
        }) == "p.json.model.code.branch = 0: expected a positive number");
  CHECK(message([](Plan& p) { p.entries[0].init_variance.value = -1; }) ==
        "p.json.entries[0].init_variance.value = -1: expected 0 or more");
  CHECK(message([](Plan& p) { p.symbols[0].value = 3; }) ==
        "p.json.symbols[0].value = 3: expected 1, as the shape implies");
  CHECK(message([](Plan& p) { p.shape.tied_head.reset(); }) ==
        "p.json.shape.tied_head = null: expected true or false");
  CHECK(message([](Plan& p) { p.shape.d_ff = 0; }) ==
        "p.json.shape.d_ff = 0: expected 56, as the shape implies");
  CHECK(message([](Plan& p) { p.base->encoder_depth = 1; }) ==
        "p.json.base.encoder_depth = 1: expected 0, as in shape");
  CHECK(message([](Plan& p) { p.base.reset(); }) ==
        "p.json.symbols[0].symbol = m_F: expected no ratio, as base is null");
}

TEST_CASE("A policy with a number that no model can use has no plan", "[plan]") {
  struct Negative : Standard {
    constexpr Row row(Group group) const {
      Row row = Standard{}.row(group);
      if (group == Group::head) row.init_variance = -1;
      return row;
    }
  };
  CHECK(error_message([] { make_plan(Negative{}, {.model = test::token_shape()}); }) ==
        "plan.entries[36].init_variance.value = -1: expected 0 or more");
}

TEST_CASE("Each planned number that no model can use is named", "[plan]") {
  const Plan good = tokens();
  const auto complaint = [&](auto member, double value) {
    Plan plan = good;
    (plan.entries[3].*member).value = value;
    return error_message([&] { check_plan(plan); });
  };
  const auto check_field = [&](const std::string& field, auto member, bool signed_number) {
    const std::string place = "plan.entries[3]." + field + ".value = ";
    INFO(field);
    CHECK(complaint(member, -1) == (signed_number ? "no error" : place + "-1: expected 0 or more"));
    CHECK(complaint(member, HUGE_VAL) == place + "inf: expected a finite number");
    CHECK(complaint(member, NAN) == place + "nan: expected a finite number");
    CHECK(complaint(member, 0) == "no error");
  };
  check_field("init_variance", &Entry::init_variance, false);
  check_field("init_mean", &Entry::init_mean, true);
  check_field("multiplier", &Entry::multiplier, true);
  check_field("learning_rate", &Entry::learning_rate, false);
  check_field("weight_decay", &Entry::weight_decay, false);
  check_field("epsilon", &Entry::epsilon, false);
}
