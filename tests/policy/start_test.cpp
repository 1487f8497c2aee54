// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plan/start.hpp"

#include <cmath>
#include <string>

#include "scalewise/io/plan_json.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "scalewise/policy/maximal_update.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/formula_problem.hpp"
#include "support/told.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

Shape started_shape(long width, long depth = 4) {
  Shape s{.d_model = width, .depth = depth, .heads = width / 32, .context = 16, .vocab = 50};
  s.tied_head = false;
  return s;
}

PlanRequest request(long width, long depth = 4) {
  return {.model = started_shape(width, depth), .base = started_shape(128)};
}

Plan relative(const std::string& rule, long width, long depth = 4) {
  return make_plan(rule, request(width, depth));
}

Plan started(const std::string& rule, PlanRequest request, const Rule& start) {
  request.start = start;
  return make_plan(rule, request);
}

template <class Start>
std::string refusal(const std::string& rule, const PlanRequest& request, const Start& start) {
  return test::error_message([&] { static_cast<void>(started(rule, request, start)); });
}

}  // namespace

TEST_CASE("A relative rule on GPT-2's start gives the numbers that one multiplies by hand") {
  // GPT-2 at width 128 and depth 4: 0.02 everywhere, 0.02/√8 for what writes to the stream. Maximal
  // update at four times the width: variances of hidden matrices by 1/4, of the table and the head by 1.
  const Plan plan = make_plan(
      MaximalUpdate{}, {.model = started_shape(512), .base = started_shape(128), .start = Gpt2{}});
  CHECK(plan.reference == Reference::absolute);
  CHECK(plan.start == "gpt2");
  CHECK(plan.rule == "maximal-update");
  const Plan factors = relative("maximal-update", 512);
  for (const Entry& entry : plan.entries) {
    INFO(entry.name);
    const bool gain = entry.group == Group::norm_gain || entry.group == Group::final_norm_gain;
    const bool hidden = architecture::is_matrix(entry.group) &&
                        entry.group != Group::token_embedding &&
                        entry.group != Group::position_embedding && entry.group != Group::head;
    const bool writes = entry.group == Group::attention_output || entry.group == Group::mlp_down;
    const double variance =
        architecture::is_matrix(entry.group) ? 0.0004 / (writes ? 8 : 1) * (hidden ? 0.25 : 1) : 0;
    CHECK_THAT(entry.init_variance.value, WithinRel(variance, 1e-14));
    CHECK(entry.init_mean.value == (gain ? 1 : 0));
    const Entry& factor = factors.at(entry.name);
    CHECK(entry.learning_rate == factor.learning_rate);
    CHECK(entry.weight_decay == factor.weight_decay);
    CHECK(entry.epsilon == factor.epsilon);
    CHECK(entry.multiplier == factor.multiplier);
  }
  CHECK(plan.model == factors.model);
  CHECK(test::formula_problem(plan) == "");
  CHECK(plan.at("layer.3.query").init_variance.scaling == 0.0004 / symbols::m_N);
  CHECK_THAT(plan.at("layer.3.query").source, ContainsSubstring("; start: gpt2"));
}

TEST_CASE("A start is written in the sizes of the target") {
  // 1/n of the base, by 1/m_N: the width of the base is n/m_N.
  const Plan plan = started("maximal-update", request(512), "standard");
  CHECK(plan.at("layer.0.query").init_variance.scaling == 1 / symbols::n);
  CHECK(plan.at("layer.0.query").init_variance.formula() == "1/n");
  CHECK(test::formula_problem(plan) == "");
  int starts = 0;
  for (const Rule& rule : rules()) {
    INFO(rule.id);
    try {
      const Plan by_rule = started("maximal-update", request(512), rule);
      CHECK(test::formula_problem(by_rule) == "");
      ++starts;
    } catch (const InvalidInput&) {  // no start for this model
    }
  }
  CHECK(starts >= 5);
}

TEST_CASE("Tensors of your own start as the base's do") {
  PlanRequest more = request(512);
  more.extras = {{"layer.*.gate", Group::mlp_up, "d_model", "64"}};
  const Plan plan = started("maximal-update", more, Gpt2{});
  CHECK_THAT(plan.at("layer.3.gate").init_variance.value, WithinRel(0.0004 / 4, 1e-14));
}

TEST_CASE("A gain acts as the base's in each formulation") {
  // Yang et al. 2022 (arXiv:2203.03466), Table 9: gains have the multiplier √m_N and start at 1/√m_N.
  PlanRequest table_9 = request(512);
  table_9.parameters = {{"table", 9}};
  const Plan factors = make_plan("maximal-update", table_9);
  const Plan plan = started("maximal-update", table_9, "gpt2");
  for (const char* name : {"layer.1.mlp_norm_gain", "final_norm_gain"}) {
    INFO(name);
    const Entry& gain = plan.at(name);
    CHECK_THAT(gain.multiplier.value, WithinRel(2, 1e-14));
    CHECK_THAT(gain.init_mean.value, WithinRel(0.5, 1e-14));
    CHECK_THAT(gain.init_mean.value, WithinRel(factors.at(name).init_mean.value, 1e-14));
  }
}

TEST_CASE("A start with gains on its branches is refused where the rule has none") {
  // LayerScale's branches begin at 0.1, SkipInit's at 0: without the gain they would begin at 1.
  for (const char* start : {"layer-scale", "skip-init"}) {
    CHECK_THAT(refusal("maximal-update", request(512), start),
               ContainsSubstring("gains on the branches"));
  }
}

TEST_CASE("The base itself starts as its start says, whatever the distribution") {
  for (const char* start : {"standard", "gpt2", "he", "pytorch", "bert"}) {
    const Plan alone = make_plan(start, {.model = started_shape(128), .optimizer = sgd});
    const Plan plan = started("maximal-update", request(128), start);
    for (const Entry& entry : plan.entries) {
      INFO(start << ": " << entry.name);
      const Entry& own = alone.at(entry.name);
      if (entry.init_variance.value == 0)
        continue;  // biases, which the relative rule starts at zero
      CHECK_THAT(entry.init_variance.value, WithinRel(own.init_variance.value, 1e-14));
      CHECK(entry.distribution == own.distribution);
    }
  }
  // Deeper than the base: every layer starts as those of the base.
  const Plan deep = started("maximal-update", request(128, 9), "gpt2");
  CHECK_THAT(deep.at("layer.8.mlp_down").init_variance.value, WithinRel(0.0004 / 8, 1e-14));
}

TEST_CASE(
    "A tensor of one's own starts in every layer as the base's, wherever its name has the layer") {
  for (const std::string name : {"gain.*", "h*_gain", "model.h.*.gain", "layer.*.gain"}) {
    PlanRequest own = request(128, 9);
    own.extras = {{name, Group::norm_gain}};
    const Plan deep = started("maximal-update", own, "gpt2");
    CAPTURE(name);
    CHECK(deep.entries.back().layer == 8);
    CHECK(deep.entries.back().init_mean.value == 1);
    CHECK(deep.entries.back().source.ends_with("; start: gpt2, convention"));
  }
}

TEST_CASE("A start that is scaled twice, relative, or no start is refused") {
  CHECK_THAT(refusal("complete-p", request(512), "gpt2"),
             ContainsSubstring("scaled twice by the depth"));
  CHECK_THAT(refusal("depth-mup", request(128), "gpt2"),
             ContainsSubstring("scaled twice by the depth"));
  CHECK(refusal("complete-p", request(512), "standard") == "no error");
  CHECK(refusal("maximal-update", request(512, 8), "gpt2") == "no error");
  CHECK_THAT(
      refusal("maximal-update", request(512), "complete-p"),
      ContainsSubstring(
          "start = complete-p: expected a rule that can initialize the base of maximal-update"));
  CHECK_THAT(refusal("maximal-update", request(512), test::told("deep-scale-lm")),
             ContainsSubstring("multiplier"));
  CHECK_THAT(refusal("gpt2", {.model = started_shape(128)}, "standard"),
             ContainsSubstring("gpt2 says itself how a model starts"));
  const Plan gpt2 = make_plan("gpt2", {.model = started_shape(128)});
  CHECK_THAT(test::error_message([&] {
               static_cast<void>(with_start(started("maximal-update", request(512), "gpt2"), gpt2));
             }),
             ContainsSubstring("maximal-update says itself how a model starts"));
  CHECK_THAT(refusal("maximal-update", request(512), "gtp2"), ContainsSubstring("gpt2"));
  CHECK_THAT(refusal("maximal-update", request(512), "xavier"),
             ContainsSubstring("its token_embedding has a multiplier"));
  // Layers that differ have no start for other depths.
  Plan layered = make_plan("standard", {.model = started_shape(128)});
  for (Entry& entry : layered.entries) {
    if (entry.name == "layer.2.mlp_up") entry.init_variance.value *= 2;
  }
  CHECK(with_start(relative("maximal-update", 128), layered)
            .at("layer.2.mlp_up")
            .init_variance.value == 2 * with_start(relative("maximal-update", 128), layered)
                                            .at("layer.1.mlp_up")
                                            .init_variance.value);
  CHECK_THAT(test::error_message([&] {
               static_cast<void>(with_start(relative("maximal-update", 128, 8), layered));
             }),
             ContainsSubstring("layer.2.mlp_up starts otherwise than layer 0"));
}

TEST_CASE("A plan keeps its start in a file") {
  const Plan plan = started("maximal-update", request(512), "gpt2");
  CHECK(plan_from_json(to_json(plan)) == plan);
  CHECK(to_json(plan)["rule"]["start"] == "gpt2");
  CHECK_FALSE(to_json(relative("maximal-update", 512))["rule"].contains("start"));
}
