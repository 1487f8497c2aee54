// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Parameters of rules: what is refused, in code and by name at run time.

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/models.hpp"

using namespace scalewise;
using namespace scalewise::test;

TEST_CASE("parameters out of range are refused by name") {
  const auto refused = [](const Rule& rule) {
    return refused_field([&] { make_plan(rule, {.model = tokens(), .base = tokens()}); });
  };
  const std::vector<std::pair<Rule, std::string>> fields{
      {MaximalUpdate{.table = 7}, "table"},
      {CompleteP{.alpha = 0.4}, "alpha"},
      {CompleteP{.alpha = std::nan("")}, "alpha"},
      {MetaPrincipled{.s = 1.5}, "s"},
      {NuGpt{.alignment = 0.3}, "alignment"},
      {NuGpt{.output_rate = 0}, "output_rate"},
      {NuGpt{.input_rate = -1}, "input_rate"},
      {NuGpt{.output_alignment = 0.4}, "output_alignment"},
      {NuGpt{.depth_exponent = 1.1}, "depth_exponent"},
      {NGptCompleteP{.horizon_exponent = -0.1}, "horizon_exponent"},
      {NGpt{.input_rate = 0}, "input_rate"},
      {DeepScaleLM{.dropout = 1}, "dropout"},
      {told(DeepScaleLM{.k = 5}), "depth"}};
  for (const auto& [rule, field] : fields) {
    INFO(rule.id << ": " << field);
    CHECK(refused(rule) == field);
  }
  NeuralTangent negative;
  negative.init_constant[Group::query] = -1;
  CHECK(refused(negative) != "accepted");
}

TEST_CASE("an input correlation is above 0 and at most 1") {
  const auto refused = [](double correlation) {
    return refused_field([&] {
      make_plan(DeepScaleLM{.dropout = 0.1, .input_correlation = correlation}, {.model = tokens()});
    });
  };
  CHECK(refused(1) == "accepted");
  CHECK(refused(std::nextafter(1.0, 2.0)) == "input_correlation");
  CHECK(refused(std::numeric_limits<double>::denorm_min()) == "accepted");
  CHECK(refused(0) == "input_correlation");
  CHECK(refused(std::nan("")) == "input_correlation");
}

TEST_CASE("DeepScaleLM counts cross attention where there is an encoder") {
  const auto refused = [](long encoder_depth) {
    Shape shape = tokens();
    shape.encoder_depth = encoder_depth;
    return refused_field([&] {
      make_plan(
          DeepScaleLM{.dropout = 0.1, .input_correlation = 0.2, .k = 0.5, .cross_attention = true},
          {.model = shape});
    });
  };
  CHECK(refused(2) == "accepted");
  CHECK(refused(0) == "cross_attention");
}

TEST_CASE("DeepScaleLM has to be told of the training and its data") {
  // The source has p = 0.1, and 0.221 for three tables of a text, 0.46 for patches of images: none
  // fits another model.
  const auto refused = [](const Rule& rule) {
    return refused_field([&] { make_plan(rule, {.model = tokens()}); });
  };
  CHECK(refused("deep-scale-lm") == "dropout");
  CHECK(refused(DeepScaleLM{.input_correlation = 0.221}) == "dropout");
  CHECK(refused(DeepScaleLM{.dropout = 0.1}) == "input_correlation");
  CHECK(refused("deep-scale-lm-simple") == "dropout");
  CHECK(refused(DeepScaleLMSimple{.full = {.dropout = 0}}) == "accepted");  // it has no use for r
  using Names = std::vector<std::string>;
  CHECK(Rule("deep-scale-lm").to_give == Names{"dropout", "input_correlation"});
  CHECK(Rule(DeepScaleLM{.dropout = 0.1}).to_give == Names{"input_correlation"});
  CHECK(Rule("neural-tangent").to_give.empty());  // its constants are 1 unless they are given
  const auto names = [](const Plan& plan) {
    std::vector<std::string> all;
    for (const Parameter& p : plan.parameters) all.push_back(p.name);
    return all;
  };
  CHECK(names(make_plan("deep-scale-lm-simple",
                        {.model = tokens(), .parameters = {{"dropout", 0.2}}})) ==
        std::vector<std::string>{"dropout", "input_variance", "embedding_tables", "k", "a",
                                 "unit_skip", "cross_attention", "learned_beta"});
  const DeepScaleLM given{.dropout = 0.2, .input_correlation = 0.3};
  const Plan plan =
      make_plan("deep-scale-lm",
                {.model = tokens(), .parameters = {{"input_correlation", 0.3}, {"dropout", 0.2}}});
  CHECK(plan == make_plan(given, {.model = tokens()}));
  CHECK(plan.parameters.front() == Parameter{"dropout", 0.2});
}

TEST_CASE("a yes-or-no parameter is 0 or 1 when it is named at run time") {
  const auto plan = [](double zero_head) {
    Shape s = tokens();
    s.tied_head = false;
    return make_plan("maximal-update",
                     {.model = s, .base = s, .parameters = {{"zero_head", zero_head}}});
  };
  CHECK(plan(0).at("head").init_variance.value == 1);
  CHECK(plan(1).at("head").init_variance.value == 0);
  for (const double value : {0.5, 2.0, -1.0}) {
    INFO(value);
    CHECK(refused_field([&] { plan(value); }) == "zero_head");
  }
}

TEST_CASE("a whole-number parameter takes no fraction when it is named at run time") {
  const auto plan = [](double table) {
    return make_plan("maximal-update",
                     {.model = tokens(), .base = tokens(), .parameters = {{"table", table}}});
  };
  CHECK(plan(9).parameters.front().value == 9);
  CHECK(refused_field([&] { plan(8.5); }) == "table");
}
