// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Two formulations of one rule train alike: the whole reference model under AdamW with decay and
// epsilon, from its own start, loss by loss. support/training_losses.hpp says how near that has to be.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/policy/all.hpp"
#include "scalewise/policy/formulation.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/training_losses.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::test;

template <class P>
Plan plan_of(const P& policy, bool tied = false, DecayForm decay = DecayForm::coupled) {
  return make_plan(policy,
                   {.model = trained_shape(tied), .base = trained_base(tied), .decay = decay});
}

std::vector<double> losses(const Plan& plan, double disturbance = 0) {
  const double rate = plan.shape.blocks == Blocks::normalized ? 0.003 : 0.01;
  return training_losses(plan, rate, disturbance);
}

/// Tensors with a multiplier.
long multiplied(const Plan& plan) {
  return std::count_if(plan.entries.begin(), plan.entries.end(),
                       [](const Entry& entry) { return entry.multiplier.value != 1; });
}

/// A rule with every multiplier in the weights.
template <class P>
struct Folded : P {
  constexpr Row row(Group group) const { return folded(P::row(group), adamw); }

  /// The embedding's multiplier is in its weights now, which a tied head reads too.
  constexpr ModelRow model() const {
    const Scaling moved = P::row(Group::token_embedding).multiplier.scaling;
    ModelRow row = P::model();
    row.tied_logit_multiplier =
        row.tied_logit_multiplier.scaling / substitute(moved, symbols::fan_out, symbols::n);
    return row;
  }
};

/// Checks that a rule trains, and that it does so alike with its multipliers in the weights.
template <class P>
void check_folded(const P& policy, bool tied) {
  const Plan plan = plan_of(policy, tied);
  const Plan moved = plan_of(Folded<P>{policy}, tied);
  INFO(plan.rule << (tied ? ", tied" : ""));
  CHECK(multiplied(plan) > 0);
  CHECK(multiplied(moved) == 0);
  const std::vector<double> expected = losses(plan);
  CHECK(expected.back() < 0.9 * expected.front());
  CHECK(largest_difference(losses(moved), expected) <= accepted_difference);
}

}  // namespace

TEST_CASE("The three tables of maximal update train alike") {
  for (const bool tied : {false, true}) {
    for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
      const std::vector<double> expected = losses(plan_of(MaximalUpdate{}, tied, decay));
      CHECK(expected.back() < 0.9 * expected.front());
      for (const int table : {3, 9}) {
        INFO("table " << table << (tied ? ", tied" : ""));
        const Plan plan = plan_of(MaximalUpdate{.table = table}, tied, decay);
        CHECK(largest_difference(losses(plan), expected) <= accepted_difference);
      }
    }
  }
}

TEST_CASE("A rule trains alike with its multipliers folded into the weights") {
  check_folded(Xavier{}, false);
  check_folded(Xavier{}, true);
  check_folded(CompleteP{}, false);
  check_folded(MaximalUpdate{.table = 9}, true);
  check_folded(NuGpt{}, false);  // its multipliers are on the rescalers
}

TEST_CASE("Training tells an epsilon, rate, decay or start that is not converted") {
  const Plan eight = plan_of(MaximalUpdate{.table = 8});
  const Plan nine = plan_of(MaximalUpdate{.table = 9});
  const std::vector<double> expected = losses(eight);
  const auto difference_without = [&](auto&& number) {
    Plan wrong = nine;
    for (std::size_t i = 0; i < wrong.entries.size(); ++i) {
      number(wrong.entries[i]) = number(eight.entries[i]);
    }
    return largest_difference(losses(wrong), expected);
  };
  REQUIRE(largest_difference(losses(nine), expected) <= accepted_difference);
  CHECK(difference_without([](auto& entry) -> auto& { return entry.epsilon; }) > 1e-3);
  CHECK(difference_without([](auto& entry) -> auto& { return entry.learning_rate; }) > 1e-3);
  CHECK(difference_without([](auto& entry) -> auto& { return entry.weight_decay; }) > 1e-3);
  CHECK(difference_without([](auto& entry) -> auto& { return entry.init_variance; }) > 1e-3);
}

TEST_CASE("Rounding does not grow beyond what is accepted") {
  const double disturbance = 1e-8;
  for (const Plan& plan : {plan_of(MaximalUpdate{}), plan_of(Xavier{}), plan_of(Xavier{}, true),
                           plan_of(CompleteP{}), plan_of(NuGpt{})}) {
    INFO(plan.rule);
    const double growth = largest_difference(losses(plan, disturbance), losses(plan)) / disturbance;
    CAPTURE(growth);
    CHECK(growth > 1e-3);  // the disturbance arrives
    CHECK(std::sqrt(16.0 * compared_steps) * epsilon * growth <= accepted_difference);
  }
}
