// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A plan with its multipliers in the weights, and one with a single learning rate, train as the plan does.
// formulation_slow_test.cpp says why 1e-12 can be asked for.

#include "scalewise/plan/fold.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "instances/registry.hpp"
#include "instances/transformer.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

/// Ratios to the base are 3 in width, 2.5 in d_ff and 1.5 in the size of heads and in depth.
Shape fold_shape(bool tied) {
  Shape s;
  s.d_model = 24;
  s.depth = 3;
  s.heads = 4;
  s.d_ff = 50;
  s.context = 9;
  s.vocab = 31;
  s.tied_head = tied;
  return s;
}

Plan fold_plan(const std::string& rule, const Optimizer& optimizer, bool tied,
               DecayForm decay = DecayForm::coupled) {
  const Shape target = fold_shape(tied);
  Shape base = target;
  base.d_model = 8;
  base.depth = 2;
  base.heads = 2;
  base.d_ff = 20;
  return make_plan(rule, optimizer, target, base, {}, decay);
}

std::vector<double> fold_losses(const Plan& plan) {
  Transformer<double> model(plan, {});
  initialize(model.parameters(), plan, 7, BaseDeviation::uniform(0.3));
  const bool adam = plan.optimizer.has_epsilon;
  const double rate = adam ? 0.01 : 0.05;
  PlannedOptimizer<double> optimizer(
      plan, {.rate = rate,
             .weight_decay = plan.decay == DecayForm::independent ? 0.3 * rate : 0.3,
             .epsilon = 1e-3});
  std::vector<double> losses;
  for (int step = 0; step <= 50; ++step) {
    const std::string suffix = std::to_string(step % 4);
    Batch<double> batch;
    batch.size = 4;
    batch.tokens = random_ids(4 * 9, 31, "tokens" + suffix);
    batch.targets = random_ids(4 * 9, 31, "targets" + suffix);
    losses.push_back(model.loss_and_gradient(batch));
    if (step < 50) optimizer.step(model.parameters());
  }
  return losses;
}

double fold_difference(const Plan& moved, const std::vector<double>& expected) {
  const std::vector<double> losses = fold_losses(moved);
  double worst = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double difference = std::abs(losses[i] / expected[i] - 1);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst;
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
        INFO(rule << (tied ? ", tied, " : ", ") << word(decay_words, decay));
        const bool plain = plan.rule == "neural-tangent" && !tied;
        CHECK((multipliers_in(plan) > 0) != plain);
        const std::vector<double> expected = fold_losses(plan);
        CHECK(expected.back() < expected.front());

        const RewrittenPlan folded = fold(plan);
        CHECK(folded.left.empty());
        CHECK(multipliers_in(folded.plan) == 0);
        check_plan(folded.plan);
        CHECK(fold_difference(folded.plan, expected) <= 1e-12);

        const RewrittenPlan single = single_rate(plan);
        for (const Entry& entry : single.plan.entries) CHECK(entry.learning_rate.value == 1);
        check_plan(single.plan);
        CHECK(fold_difference(single.plan, expected) <= 1e-12);
        CHECK(fold_difference(fold(single.plan).plan, expected) <= 1e-12);
      }
    }
  }
}

TEST_CASE("Under SGD rates go with the square") {
  for (const char* rule : {"maximal-update", "neural-tangent"}) {
    const Plan plan = fold_plan(rule, sgd, false);
    INFO(rule);
    const std::vector<double> expected = fold_losses(plan);
    CHECK(fold_difference(fold(plan).plan, expected) <= 1e-12);
    CHECK(fold_difference(single_rate(plan).plan, expected) <= 1e-12);
  }
}
