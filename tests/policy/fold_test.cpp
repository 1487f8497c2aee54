// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/plan/fold.hpp"

#include <cmath>
#include <vector>

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
        return make_plan(rule, adamw, shape, base, {}, DecayForm::coupled, more);
      };
      const Plan plain = plan_with({});
      const Plan plan = plan_with(extras);
      const auto same = [&](const Plan& with, const Plan& without) {
        CHECK(with.model == without.model);
        const auto entries = entries_of_shape(with);
        CHECK(std::vector<Entry>(entries.begin(), entries.end()) == without.entries);
      };
      same(plan, plain);
      same(single_rate(plan).plan, single_rate(plain).plan);
      const Plan folded = fold(plan).plan;
      same(folded, fold(plain).plan);
      for (const Entry& entry : plan.entries) {
        if (!is_extra(plan, entry)) continue;
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
