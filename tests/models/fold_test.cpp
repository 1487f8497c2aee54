// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A plan with its multipliers in the weights, and one with a single learning rate, train as the plan does.
// support/training_losses.hpp says how near that has to be.

#include "scalewise/plan/fold.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/constants.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/training_losses.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

/// Of another base in depth and in the size of heads as well.
Plan fold_plan(const std::string& rule, const Optimizer& optimizer, bool tied,
               DecayForm decay = DecayForm::coupled, const std::vector<Parameter>& constants = {},
               const std::vector<Parameter>& parameters = {}) {
  Shape base = trained_base(tied);
  base.depth = 3;
  base.heads = 2;
  return make_plan(rule, {.model = trained_shape(tied),
                          .base = base,
                          .optimizer = optimizer,
                          .decay = decay,
                          .parameters = parameters,
                          .constants = constants});
}

std::vector<double> fold_losses(const Plan& plan) {
  return training_losses(plan, plan.optimizer.has_epsilon ? 0.01 : 0.05);
}

long multipliers_in(const Plan& plan) {
  long count = 0;
  for (const Entry& entry : plan.entries) count += entry.multiplier.value != 1 ? 1 : 0;
  for (const Residual& r : plan.model.residuals) count += r.branch.value != 1 ? 1 : 0;
  const double scale = plan.model.attention_scale.value * std::sqrt(plan.shape.head_dim);
  return count + (plan.model.logit_multiplier.value != 1 ? 1 : 0) +
         (plan.model.embedding_multiplier.value != 1 ? 1 : 0) +
         (std::abs(scale - 1) > 1e-14 ? 1 : 0);
}

}  // namespace

TEST_CASE("A folded plan has no multipliers, and one of a single rate no other rates") {
  for (const char* rule : {"maximal-update", "complete-p", "neural-tangent", "depth-mup"}) {
    for (const bool tied : {false, true}) {
      for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
        const Plan plan = fold_plan(rule, adamw, tied, decay);
        INFO(rule << (tied ? ", tied, " : ", ") << word(policy::decay_words, decay));
        const bool plain = plan.rule == "neural-tangent" && !tied;
        CHECK((multipliers_in(plan) > 0) != plain);
        const std::vector<double> expected = fold_losses(plan);
        CHECK(expected.back() < expected.front());

        const RewrittenPlan folded = fold(plan);
        CHECK(folded.left.empty());
        CHECK(multipliers_in(folded.plan) == 0);
        check_plan(folded.plan);
        CHECK(largest_difference(fold_losses(folded.plan), expected) <= accepted_difference);

        const RewrittenPlan single = single_rate(plan);
        for (const Entry& entry : single.plan.entries) CHECK(entry.learning_rate.value == 1);
        check_plan(single.plan);
        CHECK(largest_difference(fold_losses(single.plan), expected) <= accepted_difference);
        CHECK(largest_difference(fold_losses(fold(single.plan).plan), expected) <=
              accepted_difference);
      }
    }
  }
}

TEST_CASE("A branch that ends with a norm is multiplied in the gain and the bias of that norm") {
  Shape shape = trained_shape(false), base = trained_base(false);
  shape.branch_norm = base.branch_norm = true;
  base.depth = 3;
  const Plan plan = make_plan("complete-p", {.model = shape, .base = base});
  CHECK(plan.model.residuals.front().branch.value != 1);
  const RewrittenPlan folded = fold(plan);
  CHECK(folded.left.empty());
  CHECK(folded.plan.model.residuals.front().branch.value == 1);
  CHECK(largest_difference(fold_losses(folded.plan), fold_losses(plan)) <= accepted_difference);
  shape.norm_gain = shape.norm_bias = base.norm_gain = base.norm_bias = false;
  const RewrittenPlan without = fold(make_plan("complete-p", {.model = shape, .base = base}));
  CHECK(without.left ==
        std::vector<std::string>{"residual_branch: branches end with norms that have no gain"});
  CHECK(without.plan.model.residuals.front().branch.value != 1);
}

TEST_CASE("Under SGD rates go with the square") {
  for (const char* rule : {"maximal-update", "neural-tangent"}) {
    const Plan plan = fold_plan(rule, sgd, false);
    INFO(rule);
    const std::vector<double> expected = fold_losses(plan);
    CHECK(largest_difference(fold_losses(fold(plan).plan), expected) <= accepted_difference);
    CHECK(largest_difference(fold_losses(single_rate(plan).plan), expected) <= accepted_difference);
  }
}

TEST_CASE("Constants of the base are folded and become multipliers as all factors do") {
  const std::vector<Parameter> constants{
      {"rate", 0.8},           {"embedding.rate", 2.3}, {"query.rate", 0.7},
      {"hidden.std", 1.3},     {"vector.rate", 2},      {"hidden.decay", 0.5},
      {"key.multiplier", 1.2}, {"embedding.std", 1.5},  {"logits", 1.8},
      {"scores", 1.5},         {"branches", 0.65},      {"embedding.multiplier", 3}};
  struct Trained {
    std::string rule;
    Optimizer optimizer = adamw;
    std::vector<Parameter> parameters = {};
    bool tied = false;
  };
  for (const Trained& t :
       {Trained{"complete-p", adamw, {}, true}, Trained{"depth-mup"},
        Trained{"neural-tangent", adamw, {}, true}, Trained{"standard"},
        Trained{"maximal-update", adamw, {{"table", 3}}, true}, Trained{"maximal-update"},
        Trained{"maximal-update", adamw, {{"table", 9}}, true}, Trained{"maximal-update", sgd},
        Trained{"maximal-update", sgd, {{"table", 9}}}}) {
    INFO(t.rule << " " << t.optimizer.name << (t.tied ? ", tied" : ""));
    const auto plan_of = [&](DecayForm form, const std::vector<Parameter>& some) {
      return fold_plan(t.rule, t.optimizer, t.tied, form, some, t.parameters);
    };
    const Plan plan = plan_of(DecayForm::coupled, constants);
    const std::vector<double> expected = fold_losses(plan);
    const Plan without = plan_of(DecayForm::coupled, {});
    CHECK(largest_difference(fold_losses(without), expected) > 0.01);
    const Plan independent = plan_of(DecayForm::independent, constants);
    for (const Plan& other : {independent, fold(plan).plan, single_rate(plan).plan,
                              fold(single_rate(independent).plan).plan}) {
      CHECK(largest_difference(fold_losses(other), expected) <= accepted_difference);
    }
  }
}

TEST_CASE("Constants that are refused as changing nothing change nothing") {
  struct Idle {
    std::vector<Parameter> constants;
    std::string rule = "maximal-update";
    Optimizer optimizer = sgd;  // without an epsilon
    bool tied = false;
  };
  const std::vector<Idle> all{{{{"hidden.multiplier", 3},
                                {"hidden.std", 1.0 / 3},
                                {"hidden.rate", 1.0 / 9},
                                {"hidden.decay", 9}}},
                              {{{"logits", 3}, {"output.multiplier", 1.0 / 3}}},
                              {{{"logits", 3},
                                {"final_norm_gain.multiplier", 1.0 / 3},
                                {"final_norm_bias.multiplier", 1.0 / 3}},
                               "complete-p",
                               adamw,
                               true},
                              {{{"vector.std", 3}}},
                              {{{"vector.decay", 3}}, "complete-p", adamw},
                              {{{"hidden.std", 3}}, "ngpt", adamw},
                              {{{"branches", 3}}, "ngpt", adamw},
                              {{{"query.multiplier", 3},
                                {"key.multiplier", 0.7},
                                {"value.multiplier", 3},
                                {"attention_output.multiplier", 5},
                                {"mlp_up.multiplier", 0.3},
                                {"mlp_down.multiplier", 2}},
                               "ngpt",
                               adamw}};
  for (const Idle& idle : all) {
    INFO(idle.rule << " " << idle.constants.front().name);
    const Plan plan = fold_plan(idle.rule, idle.optimizer, idle.tied);
    const Plan changed = scalewise::detail::PlanConstants(plan).run(idle.constants);
    const double gap = largest_difference(fold_losses(changed), fold_losses(plan));
    CHECK(gap <= (idle.rule == "ngpt" ? 1e-10 : accepted_difference));
    CHECK_THROWS_AS(plan::with_constants(plan, idle.constants), InvalidInput);
  }
}

TEST_CASE("A plan that is folded for a code base trains with the factors of that code") {
  const plan::CodeFactors code{.scores = 1,
                               .embedding = sqrt(symbols::n),
                               .logits = 0.5,
                               .tied_logits = 1 / sqrt(symbols::n),
                               .branch = 0.25};
  for (const char* rule : {"maximal-update", "complete-p", "standard"}) {
    for (const bool tied : {false, true}) {
      INFO(rule << (tied ? ", tied" : ""));
      const Plan plan = plan::with_code(fold_plan(rule, adamw, tied), code);
      const RewrittenPlan folded = fold(plan);
      CHECK(folded.left.empty());
      const Model& model = folded.plan.model;
      CHECK(model.attention_scale == model.code->attention_scale);
      CHECK(model.embedding_multiplier == model.code->embedding_multiplier);
      CHECK(model.logit_multiplier == model.code->logit_multiplier);
      for (const Residual& residual : model.residuals) CHECK(residual.branch == model.code->branch);
      CHECK(folded.plan.entries != plan.entries);
      CHECK(largest_difference(fold_losses(folded.plan), fold_losses(plan)) <= accepted_difference);
      CHECK(fold(folded.plan).plan == folded.plan);
    }
  }
}

TEST_CASE("The first loss of a large tied embedding is about the logit of the token just read") {
  for (const bool positions : {true, false}) {
    Shape shape = trained_shape(true);
    shape.d_model = 64;
    shape.heads = 2;
    shape.head_dim = 32;
    shape.d_ff = 0;
    shape.learned_positions = positions;
    const Plan plan = make_plan("pytorch", {.model = shape});
    const double logit = scalewise::detail::logit_of_own_token(plan);
    CHECK(std::abs(logit - (positions ? 64 / std::sqrt(2.0) : 64)) < 1e-9);
    const double loss = training_losses(plan, 0).front();
    // The blocks add to the stream what the estimate leaves out.
    CHECK(loss < 1.05 * logit);
    CHECK(loss > 0.8 * logit);
  }
}
