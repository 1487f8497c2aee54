// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plan/fold.hpp"

#include <cmath>
#include <vector>

#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/formula_problem.hpp"
#include "support/models.hpp"

using namespace scalewise;
using namespace scalewise::test;

namespace {

/// Multipliers that a folded plan still has.
long unfolded(const Plan& plan) {
  long count = 0;
  const auto add = [&](double value) { count += std::abs(value - 1) > 1e-14 ? 1 : 0; };
  for (const Entry& entry : plan.entries) add(entry.multiplier.value);
  for (const Residual& residual : plan.model.residuals) {
    add(residual.skip.value);
    add(residual.branch.value);
  }
  add(plan.model.embedding_multiplier.value);
  add(plan.model.logit_multiplier.value);
  add(plan.model.attention_scale.value * std::sqrt(static_cast<double>(plan.shape.head_dim)));
  return count;
}

}  // namespace

TEST_CASE("Every plan of every rule is folded, or says what is left") {
  for (const Rule& rule : forms()) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, rule);
      if (!plan || plan->shape.blocks == Blocks::shallow_encoder) continue;
      INFO(rule.id << ", " << variant.name);
      const RewrittenPlan folded = fold(*plan);
      check_plan(folded.plan);
      CHECK(formula_problem(*plan) == "");
      CHECK(formula_problem(folded.plan) == "");
      CHECK((unfolded(folded.plan) == 0) == folded.left.empty());
      // Nothing is left to fold, and a second time changes nothing.
      CHECK(fold(folded.plan).plan == folded.plan);
      CHECK(fold(folded.plan).left == folded.left);
    }
  }
}

TEST_CASE("Every plan of every rule has a form with one rate, or says why not") {
  for (const Rule& rule : forms()) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, rule);
      if (!plan) continue;
      INFO(rule.id << ", " << variant.name);
      try {
        const RewrittenPlan single = single_rate(*plan);
        check_plan(single.plan);
        CHECK(formula_problem(single.plan) == "");
        for (const Entry& entry : single.plan.entries) CHECK(entry.learning_rate.value == 1);
      } catch (const InvalidInput& error) {
        const bool frozen = error.field().starts_with("learning rate of ");
        CHECK((frozen || plan->shape.blocks == Blocks::normalized));
      }
    }
  }
}

// Yang, Hu et al. 2022 (arXiv:2203.03466v2): Table 8, whose output multiplier is 1/m_N, folds to Table 3; Lemma J.1
// then gives the form with one rate: W = r W' has std/r, rate 1, epsilon r and decay · r, with the multiplier r.
TEST_CASE("Folded and of one rate, maximal update has the scalings of the tables") {
  Shape shape = test::tokens();
  shape.d_model = 96;
  shape.d_ff = 0;
  shape.tied_head = false;
  Shape base = shape;
  base.d_model = 48;
  using symbols::m_N;
  const Plan plan =
      make_plan("maximal-update", {.model = shape, .base = base, .parameters = {{"table", 8}}});
  CHECK(plan.at("head").multiplier.scaling == 1 / m_N);
  CHECK(plan.model.logit_multiplier.scaling == 1 / m_N);

  const Plan folded = fold(plan).plan;
  CHECK(folded.model.logit_multiplier.scaling == Scaling(1));
  CHECK(folded.at("head").init_variance.scaling == 1 / (m_N * m_N));
  CHECK(folded.at("head").learning_rate.scaling == 1 / m_N);
  CHECK(folded.at("head").epsilon.scaling == plan.at("head").epsilon.scaling * m_N);
  CHECK(folded.at("head").weight_decay.scaling == plan.at("head").weight_decay.scaling * m_N);
  CHECK(folded.at("layer.1.mlp_up").init_variance.scaling == 1 / m_N);
  CHECK(folded.at("layer.1.mlp_up").learning_rate.scaling == 1 / m_N);
  CHECK(folded.at("token_embedding").learning_rate.scaling == Scaling(1));

  const Plan single = single_rate(folded).plan;
  CHECK(single.at("layer.1.mlp_up").learning_rate.scaling == Scaling(1));
  CHECK(single.at("layer.1.mlp_up").init_variance.scaling == m_N);
  CHECK(single.at("layer.1.mlp_up").multiplier.scaling == 1 / m_N);
  CHECK(single.at("layer.1.mlp_up").epsilon.scaling ==
        folded.at("layer.1.mlp_up").epsilon.scaling / m_N);
  CHECK(single.at("head").multiplier.scaling == 1 / m_N);
  CHECK(single.model.logit_multiplier.scaling == 1 / m_N);

  // SGD does not normalize gradients: a rate r is √r in the multiplier. Rate · decay stays.
  const Plan sgd_plan =
      make_plan("maximal-update",
                {.model = shape, .base = base, .optimizer = sgd, .parameters = {{"table", 3}}});
  const Scaling rate = sgd_plan.at("token_embedding").learning_rate.scaling;
  CHECK(rate == m_N);
  const Entry embedding = single_rate(sgd_plan).plan.at("token_embedding");
  CHECK(embedding.multiplier.scaling == sqrt(m_N));
  CHECK(embedding.weight_decay.scaling ==
        sgd_plan.at("token_embedding").weight_decay.scaling * m_N);
}

TEST_CASE("What the shape does not say is folded by itself, and changes nothing else") {
  const std::vector<Extra> extras{
      {"values", Group::head, "d_model", "vocab"},
      {"more", Group::token_embedding, "3", "d_model"},
      {"layer.*.x_attention_output", Group::mlp_down, "d_ff", "d_model"},
      {"final", Group::final_norm_gain, "d_model"},
      {"layer.*.query_bias", Group::norm_gain, "head_dim"}};
  for (const char* rule : {"maximal-update", "neural-tangent", "complete-p", "gpt2"}) {
    for (const bool tied : {false, true}) {
      Shape shape = tokens();
      shape.tied_head = tied;
      shape.biases = false;
      shape.norm_bias = false;
      Shape base = shape;
      base.d_model = 12;
      base.depth = 2;
      INFO(rule << (tied ? ", tied" : ""));
      const auto plan_with = [&](const std::vector<Extra>& more) {
        return make_plan(rule, {.model = shape, .base = base, .extras = more});
      };
      const Plan plain = plan_with({});
      const Plan plan = plan_with(extras);
      const auto same = [&](const Plan& with, const Plan& without) {
        CHECK(with.model == without.model);
        const auto entries = plan::entries_of_shape(with);
        CHECK(std::vector<Entry>(entries.begin(), entries.end()) == without.entries);
      };
      same(plan, plain);
      same(single_rate(plan).plan, single_rate(plain).plan);
      const Plan folded = fold(plan).plan;
      same(folded, fold(plain).plan);
      for (const Entry& entry : plan.entries) {
        if (!plan::is_extra(plan, entry)) continue;
        INFO(entry.name);
        const Entry& is = folded.at(entry.name);
        const double t = entry.multiplier.value;
        CHECK(is.multiplier.value == 1);
        CHECK_THAT(is.init_variance.value,
                   Catch::Matchers::WithinRel(t * t * entry.init_variance.value, 1e-14));
        CHECK_THAT(is.learning_rate.value,
                   Catch::Matchers::WithinRel(t * entry.learning_rate.value, 1e-14));
      }
    }
  }
}

namespace {

const plan::CodeFactors t5_code{.scores = 1, .tied_logits = 1 / sqrt(symbols::n)};
const plan::CodeFactors granite_code{.scores = 0.0078125,
                                     .embedding = 12,
                                     .logits = 1.0 / 16,
                                     .tied_logits = 1.0 / 16,
                                     .branch = 0.22};

}  // namespace

TEST_CASE("Code that does not divide scores gets what is left of the rule's factor") {
  // T5: base scores q.k, the target's (1/m_C) q.k; with heads twice as large queries take 1/2, not 1/sqrt(2).
  Shape base = tokens();
  base.tied_head = true;
  Shape target = base;
  target.head_dim = 2 * resolved(base).head_dim;
  const Plan plan = make_plan("maximal-update", {.model = target, .base = base});
  const Plan coded = plan::with_code(plan, t5_code);
  CHECK(std::abs(coded.model.attention_scale.value - 0.5) < 1e-15);
  CHECK(coded.model.code->attention_scale.value == 1);
  const Plan folded = fold(coded).plan;
  CHECK(folded.model.attention_scale.value == 1);
  const double std_ratio = std_dev(folded.at("layer.0.query").init_variance) /
                           std_dev(plan.at("layer.0.query").init_variance);
  CHECK(std::abs(std_ratio - 0.5) < 1e-15);
  CHECK(std::abs(folded.at("layer.0.query").learning_rate.value /
                     plan.at("layer.0.query").learning_rate.value -
                 0.5) < 1e-15);
  const double plain = std_dev(fold(plan).plan.at("layer.0.query").init_variance) /
                       std_dev(plan.at("layer.0.query").init_variance);
  CHECK(std::abs(plain - std::sqrt(0.5)) < 1e-15);
}

TEST_CASE("Code that divides scores by √C leaves the scores as they were, whatever else it does") {
  // Gemma: scores q.k/√C and embeddings by √n; heads twice as large take the rule's 1/2 of the base's.
  const Shape base = tokens();
  Shape target = base;
  target.head_dim = 2 * resolved(base).head_dim;
  const Plan plan = make_plan("maximal-update", {.model = target, .base = base});
  const Plan coded = plan::with_code(plan, plan::CodeFactors{.embedding = sqrt(symbols::n)});
  const double of_base = 1 / std::sqrt(static_cast<double>(resolved(base).head_dim));
  CHECK(std::abs(coded.model.attention_scale.value - of_base / 2) < 1e-15);
  CHECK(coded.model.attention_scale == plan.model.attention_scale);
  // The rest of 1/2 after the code's own 1/√2.
  CHECK(std::abs(
            plan::left_over(coded.model.attention_scale, coded.model.code->attention_scale).value -
            std::sqrt(0.5)) < 1e-15);
}

TEST_CASE("Code that multiplies embeddings by the root of the width leaves the inverse") {
  Shape base = tokens();
  Shape target = base;
  target.d_model = 4 * base.d_model;
  target.head_dim = resolved(base).head_dim;
  const plan::CodeFactors scaled{.embedding = sqrt(symbols::n)};
  const Plan plan =
      plan::with_code(make_plan("maximal-update", {.model = target, .base = base}), scaled);
  CHECK(plan.model.code->embedding_multiplier.formula() == "√m_N");
  CHECK(plan::left_over(plan.model.embedding_multiplier, plan.model.code->embedding_multiplier)
            .value == 0.5);
  CHECK(fold(plan).plan.at("token_embedding").init_variance.value == 0.25);
  // A rule without a base says what the model itself is like.
  const Plan absolute = plan::with_code(make_plan("standard", {.model = target}), scaled);
  CHECK(absolute.model.code->embedding_multiplier.formula() == "√n");
  CHECK(std::abs(fold(absolute).plan.at("token_embedding").init_variance.value *
                     static_cast<double>(target.d_model) /
                     absolute.at("token_embedding").init_variance.value -
                 1) < 1e-14);
  REQUIRE(plan::code_notes(plan).size() == 1);
  CHECK(plan::code_notes(plan).front() ==
        "the code multiplies embeddings by √m_N times the base's, so that 0.5 is left to multiply");
}

TEST_CASE("Over a base of its own size a plan changes nothing, whatever the code multiplies") {
  Shape shape = tokens();
  shape.tied_head = true;
  for (const plan::CodeFactors& code : {plan::CodeFactors{}, t5_code, granite_code}) {
    const Plan plan =
        plan::with_code(make_plan("maximal-update", {.model = shape, .base = shape}), code);
    const Plan folded = fold(plan).plan;
    for (std::size_t i = 0; i < plan.entries.size(); ++i) {
      INFO(plan.entries[i].name);
      CHECK(std::abs(folded.entries[i].init_variance.value - plan.entries[i].init_variance.value) <=
            1e-14);
      CHECK(std::abs(folded.entries[i].learning_rate.value - 1) <= 1e-14);
    }
  }
}

TEST_CASE("Constants of a configuration are those of each model's own code") {
  Shape base = tokens();
  Shape target = base;
  target.head_dim = 2 * resolved(base).head_dim;
  plan::CodeFactors of_target = granite_code, of_base = granite_code;
  of_base.scores = 1.0 / 4;
  of_target.scores = 1.0 / 8;
  of_target.embedding = 24;
  const Plan plan = plan::with_code(make_plan("maximal-update", {.model = target, .base = base}),
                                    of_target, of_base);
  // Scores of the base are q.k/4, and of the target q.k/8: as the rule has it.
  CHECK(std::abs(plan.model.attention_scale.value - 1.0 / 8) < 1e-15);
  CHECK(
      std::abs(plan::left_over(plan.model.attention_scale, plan.model.code->attention_scale).value -
               1) < 1e-14);
  CHECK(plan.model.code->embedding_multiplier.value == 2);
  CHECK(plan.model.code->branch.value == 1);
  check_plan(plan);
}
