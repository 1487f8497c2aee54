// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Two formulations of one rule train alike: the whole reference model under AdamW with decay and
// epsilon, from its own start, loss by loss.
//
// Why 1e-12 can be asked for. The two compute the same numbers with other roundings. A step adds
// some 16 roundings to a weight, of either sign, so 50 steps add √(16 * 50) epsilon, or 6e-15.
// What a change of a weight does to the losses is the growth that the last test measures; it has to
// stay below 150. It does while epsilon is not far below the gradients: an entry whose gradient is
// itself rounding gets a step of full size when epsilon is 0, and one of rounding's size when
// epsilon is of the size of gradients. With 1e-8, and a rate of 0.01, the normalized transformer
// has a growth of 2e4 and a difference of 7e-12.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/nn/optimizer.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/policy/formulation.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/model_gradient.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::nn;
using namespace scalewise::test;

constexpr int steps = 50;
constexpr double accepted = 1e-12;

/// Ratios to the base are 3 in width and 2.5 in d_ff, no powers of two: every factor is rounded.
Shape target(bool tied) {
  Shape s;
  s.d_model = 24;
  s.depth = 2;
  s.heads = 4;
  s.d_ff = 50;
  s.context = 9;
  s.vocab = 31;
  s.tied_head = tied;
  return s;
}

Shape base(bool tied) {
  Shape s = target(tied);
  s.d_model = 8;
  s.d_ff = 20;
  return s;
}

template <class P>
Plan plan_of(const P& policy, bool tied = false, DecayForm decay = DecayForm::coupled) {
  return make_plan<P, adamw>(target(tied), base(tied), policy, decay);
}

/// Epsilon is of the size of the gradients, so that the steps depend on it; decay is felt too.
OptimizerConfig config_of(const Plan& plan) {
  const double rate = plan.shape.blocks == Blocks::normalized ? 0.003 : 0.01;
  const double decay = plan.decay == DecayForm::independent ? 0.3 * rate : 0.3;
  return {.rate = rate, .weight_decay = decay, .epsilon = 1e-3};
}

/// Four sequences of nine random tokens.
Batch<double> batch_of(int number) {
  const std::string suffix = std::to_string(number);
  Batch<double> batch;
  batch.size = 4;
  batch.tokens = random_ids(4 * 9, 31, "tokens" + suffix);
  batch.targets = random_ids(4 * 9, 31, "targets" + suffix);
  return batch;
}

/// The losses before each step and after the last, on four batches in turn.
/// `disturbance` moves every parameter of the start by that share of itself, up or down.
std::vector<double> losses(const Plan& plan, double disturbance = 0) {
  Transformer<double> model(plan, {});
  initialize(model.parameters(), plan, 7, BaseDeviation::uniform(0.3));
  RandomStream stream(1, "disturbance");
  View<double> values = model.parameters().values();
  for (Index i = 0; i < values.size(); ++i) {
    values.data()[i] *= 1 + (stream.uniform() < 0.5 ? -disturbance : disturbance);
  }
  PlannedOptimizer<double> optimizer(plan, config_of(plan));
  std::vector<double> all;
  for (int step = 0; step <= steps; ++step) {
    normalize_matrices(model.parameters(), plan);
    all.push_back(model.loss_and_gradient(batch_of(step % 4)));
    if (step < steps) optimizer.step(model.parameters());
  }
  return all;
}

/// Relative, over all steps; infinite where a loss is no number.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(a[i] / b[i] - 1);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst;
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

  /// What was the embedding's multiplier is in its weights now, which a tied head reads too.
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
  CHECK(largest_difference(losses(moved), expected) <= accepted);
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
        CHECK(largest_difference(losses(plan), expected) <= accepted);
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
  REQUIRE(largest_difference(losses(nine), expected) <= accepted);
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
    CHECK(std::sqrt(16.0 * steps) * epsilon * growth <= accepted);
  }
}
