// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/coordinate_run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "instances/transformer.hpp"
#include "scalewise/check/recorder.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

namespace {

/// Whether an activation is recorded; all others that an observer sees are made of these.
bool recorded(std::string_view name) {
  constexpr std::array<std::string_view, 8> roles{
      "embedding",  "attention.scores", "attention.output", "mlp.hidden",
      "mlp.output", "mlp.stream",       "final_hidden",     "logits"};
  return std::any_of(roles.begin(), roles.end(),
                     [&](std::string_view role) { return name.ends_with(role); });
}

/// Gradients and updates are recorded while they are the rule's and not yet the trajectory's.
bool parameters_recorded(long step) { return step <= 2; }

}  // namespace

check::Records record_run(const train::Settings& s, const train::Data& data, const Plan& plan,
                          long size, double gradient_scale) {
  using Scalar = float;
  check::Recorder recorder({size, s.seed});
  nn::Transformer<Scalar> model(plan, train::config_of(s));
  nn::PlannedOptimizer<Scalar> optimizer(plan, train::optimizer_of(s));
  nn::Parameters<Scalar>& parameters = model.parameters();
  nn::initialize(parameters, plan, s.seed, train::base_deviation(s, plan));
  nn::normalize_matrices(parameters, plan);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto values = parameters.value(i);
    recorder.record_parameter(parameters.name(i), values.data(),
                              static_cast<std::size_t>(values.size()), 0);
  }
  const auto batch = train::training_batch<Scalar>(s, data, 0);

  long step = 0;
  model.observe([&](std::string_view name, nn::Observed quantity, const auto& values) {
    if (quantity == nn::Observed::gradient && name == "logits" && parameters_recorded(step)) {
      recorder.record_gradient("logits", values.data(), static_cast<std::size_t>(values.size()),
                               step);
    }
    if (quantity != nn::Observed::value || !recorded(name)) return;
    recorder.record(std::string(name), values.data(), static_cast<std::size_t>(values.size()),
                    step);
  });
  for (; step < s.steps; ++step) {
    model.loss_and_gradient(batch);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto gradient = parameters.gradient(i);
      const bool head =
          plan.entries[i].group == Group::head || plan.entries[i].group == Group::head_bias;
      if (gradient_scale != 1 && !head) gradient *= static_cast<Scalar>(gradient_scale);
      if (!parameters_recorded(step)) continue;
      recorder.record_gradient(parameters.name(i), gradient.data(),
                               static_cast<std::size_t>(gradient.size()), step);
    }
    nn::PlannedOptimizer<Scalar>::UpdateObserver observer;
    if (parameters_recorded(step + 1)) {
      observer = [&](const std::string& name, const ConstView<Scalar>& change) {
        recorder.record_update(name, change.data(), static_cast<std::size_t>(change.size()),
                               step + 1);
      };
    }
    optimizer.step(parameters, 1, observer);
    nn::normalize_matrices(parameters, plan);
  }
  model.loss(batch);
  return recorder.records();
}

double usual_rate(const train::Settings& s, const train::Data& data, const Plan& plan) {
  constexpr double most = 0.03;
  train::Settings one = s;
  one.steps = 1;
  one.rate = 1;
  const check::Records records = record_run(one, data, plan, 1, 1);
  const auto rms = [&](check::Signal signal, const std::string& name, long step) {
    const check::Records::Runs* runs = records.find({signal, name}, step);
    return runs == nullptr ? 0 : runs->begin()->second.rms();
  };
  double rate = 1e30;
  for (const Entry& entry : plan.entries) {
    if (!is_matrix(entry.group)) continue;
    const double size = rms(check::Signal::parameter, entry.name, 0);
    const double step =
        entry.optimizer.normalization == Normalization::none
            ? entry.learning_rate.value * rms(check::Signal::gradient, entry.name, 0)
            : entry.learning_rate.value;
    if (size > 0 && step > 0) rate = (std::min)(rate, most * size / step);
  }
  return rate;
}

std::vector<check::OptimizerSetting> live_settings(const train::Settings& s, const Plan& plan,
                                                   double weight_decay) {
  nn::OptimizerConfig config = train::optimizer_of(s);
  config.weight_decay = weight_decay;
  nn::PlannedOptimizer<float> optimizer(plan, config);
  std::vector<check::OptimizerSetting> live;
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const double rate = optimizer.rate(i);
    const bool coupled = plan.decay != DecayForm::independent && rate > 0;
    live.push_back({plan.entries[i].name, rate, optimizer.shrink(i) / (coupled ? rate : 1),
                    optimizer.epsilon(i)});
  }
  return live;
}

}  // namespace scalewise::experiment
