// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How well a model learns at a rate.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/transformer.hpp"
#include "train/data.hpp"
#include "train/divergence.hpp"
#include "train/interrupt.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

/// Trains a model and takes the mean loss over the last tenth of its steps: each batch is measured
/// before the step that learns from it, and windows hardly repeat in a short run, so this is close
/// to a validation loss, at no cost. Runs of one seed read the same batches, whatever rate or width
/// they have, so that what is common to them cancels in differences.
/// Returns:  infinity if the run diverged, as DivergenceWatch tells; nothing if it was interrupted.
inline std::optional<double> final_loss(const train::Settings& s, const train::Data& data) {
  const Plan plan = train::plan_of(s, train::data_shape(s, data));
  nn::Transformer<float> model(plan, train::config_of(s));
  nn::PlannedOptimizer<float> optimizer(plan, train::optimizer_of(s));
  nn::initialize(model.parameters(), plan, s.seed, train::base_deviation(s, plan));
  nn::normalize_matrices(model.parameters(), plan);
  const nn::Schedule schedule = train::schedule_of(s);
  const double infinite = std::numeric_limits<double>::infinity();
  const long measured = s.steps < 10 ? 1 : s.steps / 10;
  train::DivergenceWatch watch(s, std::log(256.0));
  double sum = 0;
  try {
    for (long step = 0; step < s.steps; ++step) {
      if (train::stop_request() != 0) return {};
      const auto batch = train::training_batch<float>(s, data, step);
      const double loss = model.loss_and_gradient(batch, static_cast<std::uint64_t>(step));
      const double gradient_norm = nn::gradient_norm(model.parameters());
      watch.check(step + 1, loss, gradient_norm, model.parameters());
      optimizer.step(model.parameters(), schedule.factor(step));
      nn::normalize_matrices(model.parameters(), plan);
      if (step >= s.steps - measured) sum += loss;
    }
  } catch (const train::Diverged&) {
    return infinite;
  }
  const double loss = sum / static_cast<double>(measured);
  return watch.good(loss) ? loss : infinite;
}

}  // namespace scalewise::experiment
