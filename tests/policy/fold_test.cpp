// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plan/fold.hpp"

#include <cmath>

#include "scalewise/plan/single_rate.hpp"
#include "support/catch.hpp"
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
  for_each_form([]<class P>(const P& policy) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan || plan->shape.blocks == Blocks::shallow_encoder) continue;
      INFO(P::id << ", " << variant.name);
      const RewrittenPlan folded = fold(*plan);
      check_plan(folded.plan);
      CHECK((unfolded(folded.plan) == 0) == folded.left.empty());
      // Nothing is left to fold, and a second time changes nothing.
      CHECK(fold(folded.plan).plan == folded.plan);
      CHECK(fold(folded.plan).left == folded.left);
    }
  });
}

TEST_CASE("Every plan of every rule has a form with one rate, or says why not") {
  for_each_form([]<class P>(const P& policy) {
    for (const Variant& variant : variants()) {
      const std::optional<Plan> plan = planned(variant.shape, policy);
      if (!plan) continue;
      INFO(P::id << ", " << variant.name);
      try {
        const RewrittenPlan single = single_rate(*plan);
        check_plan(single.plan);
        for (const Entry& entry : single.plan.entries) CHECK(entry.learning_rate.value == 1);
      } catch (const InvalidInput& error) {
        const bool frozen = error.field().starts_with("learning rate of ");
        CHECK((frozen || plan->shape.blocks == Blocks::normalized));
      }
    }
  });
}
