// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/coordinate_run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/check/recorder.hpp"
#include "scalewise/dense/buffer.hpp"
#include "scalewise/numeric/parallel.hpp"
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

using Scalar = float;

check::Moments moments_of(const ConstView<Scalar>& values) {
  check::Moments moments;
  moments.add(values.data(), static_cast<std::size_t>(values.size()));
  return moments;
}

/// The steps of a run, block by block, while the gradients of a block are at hand.
class RecordedSteps {
 public:
  RecordedSteps(nn::Transformer<Scalar>& model, nn::PlannedOptimizer<Scalar>& optimizer,
                const Plan& plan, double gradient_scale, check::Recorder& recorder)
      : model_(model),
        parameters_(model.parameters()),
        optimizer_(optimizer),
        plan_(plan),
        gradient_scale_(static_cast<Scalar>(gradient_scale)),
        recorder_(recorder) {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      all_.push_back(i);
      blocks_[parameters_.block(i)].push_back(i);
    }
  }

  void record_parameters() {
    record(check::Signal::parameter, all_, 0,
           [&](std::size_t i, std::size_t) { return moments_of(read(parameters_.value(i))); });
  }

  /// Step `step`, from 0.
  void make(const nn::Batch<Scalar>& batch, long step) {
    model_.loss(batch, 0);
    optimizer_.begin_step(parameters_);
    model_.backward(batch, [&](const nn::BlockId& block) { make(block, step); });
    nn::normalize_matrices(parameters_, plan_);
  }

 private:
  using Tensors = std::vector<std::size_t>;

  void make(const nn::BlockId& block, long step) {
    const Tensors& tensors = blocks_[block];
    if (gradient_scale_ != 1) scale_gradients(tensors);
    if (parameters_recorded(step)) {
      record(check::Signal::gradient, tensors, step,
             [&](std::size_t i, std::size_t) { return moments_of(read(parameters_.gradient(i))); });
    }
    if (!parameters_recorded(step + 1)) {
      optimizer_.step_block(parameters_, block);
      return;
    }
    before_.resize((std::max)(before_.size(), tensors.size()));
    each(tensors, [&](std::size_t i, std::size_t at) {
      const View<Scalar> value = parameters_.value(i);
      before_[at].shape(value.rows(), value.cols()) = value;
    });
    optimizer_.step_block(parameters_, block);
    record(check::Signal::update, tensors, step + 1, [&](std::size_t i, std::size_t at) {
      View<Scalar> change = before_[at].view();
      change = parameters_.value(i) - change;
      return moments_of(read(change));
    });
  }

  void scale_gradients(const Tensors& tensors) {
    for (const std::size_t i : tensors) {
      const Group group = plan_.entries[i].group;
      if (group == Group::head || group == Group::head_bias) continue;
      parameters_.gradient(i) *= gradient_scale_;
    }
  }

  /// Calls task(tensor, number within these tensors).
  template <class Task>
  static void each(const Tensors& tensors, const Task& task) {
    parallel_for(static_cast<std::ptrdiff_t>(tensors.size()), [&](std::ptrdiff_t at) {
      task(tensors[static_cast<std::size_t>(at)], static_cast<std::size_t>(at));
    });
  }

  /// Records moments(tensor, number) of each of these tensors.
  template <class MomentsOf>
  void record(check::Signal signal, const Tensors& tensors, long step, const MomentsOf& moments) {
    std::vector<check::Moments> found(tensors.size());
    each(tensors, [&](std::size_t i, std::size_t at) { found[at] = moments(i, at); });
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      recorder_.record_moments(signal, parameters_.name(tensors[at]), found[at], step);
    }
  }

  nn::Transformer<Scalar>& model_;
  nn::Parameters<Scalar>& parameters_;
  nn::PlannedOptimizer<Scalar>& optimizer_;
  const Plan& plan_;
  Scalar gradient_scale_;
  check::Recorder& recorder_;
  Tensors all_;
  std::map<nn::BlockId, Tensors> blocks_;
  std::vector<Buffer<Scalar>> before_;  // of a block's tensors: their values, then their changes
};

}  // namespace

check::Records record_run(const train::Settings& s, const train::Data& data, const Plan& plan,
                          long size, double gradient_scale) {
  check::Recorder recorder({size, s.seed});
  nn::Transformer<Scalar> model(plan, train::config_of(s), nn::Gradients::block_by_block);
  nn::PlannedOptimizer<Scalar> optimizer(plan, train::optimizer_of(s));
  nn::initialize(model.parameters(), plan, s.seed, train::base_deviation(s, plan));
  nn::normalize_matrices(model.parameters(), plan);
  RecordedSteps steps(model, optimizer, plan, gradient_scale, recorder);
  steps.record_parameters();
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
  for (; step < s.steps; ++step) steps.make(batch, step);
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
