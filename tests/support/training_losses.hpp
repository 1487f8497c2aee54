// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whether two plans train alike: the whole reference model, loss by loss.
//
// Why 1e-12 can be asked for. The two compute the same numbers with other roundings. A step adds
// some 16 roundings to a weight, of either sign, so 50 steps add √(16 * 50) epsilon, or 6e-15.
// The effect of a change of a weight on the losses is the growth that formulation_slow_test measures; it has
// to stay below 150. It does while epsilon is not far below the gradients: an entry whose gradient is
// itself rounding gets a step of full size when epsilon is 0, and one of rounding's size when
// epsilon is of the size of gradients. With 1e-8, and a rate of 0.01, the normalized transformer
// has a growth of 2e4 and a difference of 7e-12.

#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scalewise/nn/normalize_matrices.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/policy/rule.hpp"
#include "support/model_gradient.hpp"

namespace scalewise::test {

inline constexpr int compared_steps = 50;
inline constexpr double accepted_difference = 1e-12;

/// For four sequences of nine of 31 tokens. Ratios to the base are 3 in width and 2.5 in d_ff, no powers
/// of two: every factor is rounded.
inline Shape trained_shape(bool tied) {
  Shape s{.d_model = 24, .depth = 2, .heads = 4, .d_ff = 50, .context = 9, .vocab = 31};
  s.tied_head = tied;
  return s;
}

inline Shape trained_base(bool tied) {
  Shape s = trained_shape(tied);
  s.d_model = 8;
  s.d_ff = 20;
  return s;
}

/// Epsilon is of the size of the gradients, so that the steps depend on it; decay is felt too.
inline nn::OptimizerConfig trained_config(const Plan& plan, double rate) {
  const double decay = plan.decay == DecayForm::independent ? 0.3 * rate : 0.3;
  return {.rate = rate, .weight_decay = decay, .epsilon = 1e-3};
}

/// The losses before each step and after the last, on four batches in turn.
/// `disturbance` moves every parameter of the start by that share of itself, up or down.
inline std::vector<double> training_losses(const Plan& plan, double rate, double disturbance = 0) {
  using namespace scalewise::nn;
  Transformer<double> model(plan, config_of(Rule(plan.rule).text));
  initialize(model.parameters(), plan, 7, BaseDeviation::uniform(0.3));
  numeric::RandomStream stream(1, "disturbance");
  View<double> values = model.parameters().values();
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    values.data()[i] *= 1 + (stream.uniform() < 0.5 ? -disturbance : disturbance);
  }
  PlannedOptimizer<double> optimizer(plan, trained_config(plan, rate));
  std::vector<double> losses;
  for (int step = 0; step <= compared_steps; ++step) {
    const std::string suffix = std::to_string(step % 4);
    Batch<double> batch;
    batch.size = 4;
    batch.tokens = random_ids(4 * 9, 31, "tokens" + suffix);
    batch.targets = random_ids(4 * 9, 31, "targets" + suffix);
    normalize_matrices(model.parameters(), plan);
    losses.push_back(model.loss_and_gradient(batch));
    if (step < compared_steps) optimizer.step(model.parameters());
  }
  return losses;
}

/// Relative, over all steps; infinite where a loss is not a number.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(a[i] / b[i] - 1);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst;
}

}  // namespace scalewise::test
