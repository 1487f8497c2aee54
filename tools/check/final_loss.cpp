// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/final_loss.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "check/network_plan.hpp"
#include "frame/signals.hpp"
#include "instances/transformer.hpp"
#include "train/batches.hpp"
#include "train/divergence.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

std::optional<double> final_loss(const train::Settings& s, const train::Data& data,
                                 const AfterStep& after_step) {
  return final_loss(network_plan(s, data), s, data, after_step);
}

std::optional<double> final_loss(const Plan& plan, const train::Settings& s,
                                 const train::Data& data, const AfterStep& after_step) {
  nn::Transformer<float> model(plan, train::config_of(s));
  nn::PlannedOptimizer<float> optimizer(plan, train::optimizer_of(s));
  nn::initialize(model.parameters(), plan, s.seed, train::base_deviation(s, plan));
  nn::normalize_matrices(model.parameters(), plan);
  const nn::Schedule schedule = train::schedule_of(s);
  const double infinite = std::numeric_limits<double>::infinity();
  const long measured = s.steps < 10 ? 1 : s.steps / 10;
  train::DivergenceWatch watch(s, data.guess());
  double sum = 0;
  try {
    for (long step = 0; step < s.steps; ++step) {
      if (frame::stop_requested() != 0) return {};
      const auto batch = train::training_batch<float>(s, data, step);
      const double loss = model.loss_and_gradient(batch, static_cast<std::uint64_t>(step));
      const double gradient_norm = nn::gradient_norm(model.parameters());
      watch.check(step + 1, loss, gradient_norm, model.parameters());
      optimizer.step(model.parameters(), schedule.factor(step));
      nn::normalize_matrices(model.parameters(), plan);
      if (step >= s.steps - measured) sum += loss;
      if (after_step && !after_step(step + 1)) break;
    }
  } catch (const train::Diverged&) {
    return infinite;
  }
  const double loss = sum / static_cast<double>(measured);
  return watch.good(loss) ? loss : infinite;
}

}  // namespace scalewise::experiment
