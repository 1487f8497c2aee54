// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A plan with its multipliers in the weights, and one with a single learning rate, train as the plan does.
// support/training_losses.hpp says how near that has to be.

#include "scalewise/plan/fold.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "instances/registry.hpp"
#include "instances/transformer.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
#include "support/training_losses.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

/// Of another base in depth and in the size of heads as well.
Plan fold_plan(const std::string& rule, const Optimizer& optimizer, bool tied,
               DecayForm decay = DecayForm::coupled) {
  Shape base = trained_base(tied);
  base.depth = 3;
  base.heads = 2;
  return make_plan(rule, optimizer, trained_shape(tied), base, {}, decay);
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
        INFO(rule << (tied ? ", tied, " : ", ") << word(decay_words, decay));
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

TEST_CASE("Under SGD rates go with the square") {
  for (const char* rule : {"maximal-update", "neural-tangent"}) {
    const Plan plan = fold_plan(rule, sgd, false);
    INFO(rule);
    const std::vector<double> expected = fold_losses(plan);
    CHECK(largest_difference(fold_losses(fold(plan).plan), expected) <= accepted_difference);
    CHECK(largest_difference(fold_losses(single_rate(plan).plan), expected) <= accepted_difference);
  }
}
