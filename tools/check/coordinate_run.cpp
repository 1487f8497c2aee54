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
#include "train/batches.hpp"
#include "train/model.hpp"

namespace scalewise::experiment {

namespace {

/// Whether an activation is recorded; all others that an observer sees are made of these.
bool recorded(std::string_view name) {
  constexpr std::array<std::string_view, 9> places{
      "embedding",  "attention.scores", "attention.output", "mlp.router", "mlp.hidden",
      "mlp.output", "mlp.stream",       "final_hidden",     "logits"};
  return std::any_of(places.begin(), places.end(),
                     [&](std::string_view place) { return name.ends_with(place); });
}

/// Gradients and updates are recorded while they are the rule's and not yet the trajectory's.
bool gradients_and_updates_recorded(long step) { return step <= 2; }

using Scalar = float;

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
    record(check::Signal::parameter, all_, 0, [&](const Piece& piece, check::Moments& moments) {
      moments.add(values(piece).data(), count(piece.size));
    });
  }

  /// Step `step`, from 0.
  void make(const nn::Batch<Scalar>& batch, long step) {
    model_.loss(batch, 0);
    optimizer_.begin_step(parameters_);
    model_.backward([&](const nn::BlockId& block) { make(block, step); });
    nn::normalize_matrices(parameters_, plan_);
  }

 private:
  using Tensors = std::vector<std::size_t>;

  void make(const nn::BlockId& block, long step) {
    const Tensors& tensors = blocks_[block];
    if (gradient_scale_ != 1) scale_gradients(tensors);
    if (gradients_and_updates_recorded(step)) {
      record(
          check::Signal::gradient, tensors, step, [&](const Piece& piece, check::Moments& moments) {
            moments.add(parameters_.gradient(piece.tensor).data() + piece.begin, count(piece.size));
          });
    }
    if (!gradients_and_updates_recorded(step + 1)) {
      optimizer_.step_block(parameters_, block);
      return;
    }
    before_.resize((std::max)(before_.size(), tensors.size()));
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      before_[at].shape(1, parameters_.value(tensors[at]).size());
    }
    each(tensors, [&](const Piece& piece) { values_before(piece) = values(piece); });
    optimizer_.step_block(parameters_, block);
    record(check::Signal::update, tensors, step + 1,
           [&](const Piece& piece, check::Moments& moments) {
             Row change = values_before(piece);
             change = values(piece) - change;
             moments.add(change.data(), count(piece.size));
           });
  }

  void scale_gradients(const Tensors& tensors) {
    for (const std::size_t i : tensors) {
      const Group group = plan_.entries[i].group;
      if (group == Group::head || group == Group::head_bias) continue;
      parameters_.gradient(i) *= gradient_scale_;
    }
  }

  /// Entries of a tensor that one thread works on.
  struct Piece {
    std::size_t tensor;
    std::size_t at;  // within the tensors at hand
    Eigen::Index begin, size;
  };
  static constexpr Eigen::Index most = 1 << 15;  // of a piece

  static std::size_t count(Eigen::Index size) { return static_cast<std::size_t>(size); }

  using Row = Eigen::Map<Eigen::Array<Scalar, 1, Eigen::Dynamic>>;
  Row values(const Piece& piece) {
    return {parameters_.value(piece.tensor).data() + piece.begin, piece.size};
  }
  Row values_before(const Piece& piece) {
    return {before_[piece.at].view().data() + piece.begin, piece.size};
  }

  /// Calls task(piece) for all pieces of these tensors.
  template <class Task>
  void each(const Tensors& tensors, const Task& task) {
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      numeric::parallel_tiles(parameters_.value(tensors[at]).size(), most,
                              [&](Eigen::Index begin, Eigen::Index size) {
                                task(Piece{tensors[at], at, begin, size});
                              });
    }
  }

  /// Records what add(piece, moments) adds for the pieces of each of these tensors.
  template <class Add>
  void record(check::Signal signal, const Tensors& tensors, long step, const Add& add) {
    std::vector<std::vector<check::Moments>> found;
    for (const std::size_t i : tensors) {
      found.emplace_back(count((parameters_.value(i).size() + most - 1) / most));
    }
    each(tensors,
         [&](const Piece& piece) { add(piece, found[piece.at][count(piece.begin / most)]); });
    for (std::size_t at = 0; at < tensors.size(); ++at) {
      check::Moments all;
      for (const check::Moments& moments : found[at]) all += moments;
      recorder_.record_moments(signal, parameters_.name(tensors[at]), all, step);
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
  std::vector<dense::Buffer<Scalar>>
      before_;  // of a block's tensors: their values, then their changes
};

}  // namespace

check::Records record_run(const train::Settings& s, const train::Data& data, const Plan& plan,
                          long size, double gradient_scale, const AfterStep& after_step) {
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
    if (quantity == nn::Observed::gradient && name == "logits" &&
        gradients_and_updates_recorded(step)) {
      recorder.record_gradient("logits", values.data(), static_cast<std::size_t>(values.size()),
                               step);
    }
    if (quantity != nn::Observed::value || !recorded(name)) return;
    recorder.record(std::string(name), values.data(), static_cast<std::size_t>(values.size()),
                    step);
  });
  while (step < s.steps) {
    steps.make(batch, step);
    ++step;
    if (after_step && !after_step(step)) break;
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
    if (!architecture::is_matrix(entry.group)) continue;
    const double size = rms(check::Signal::parameter, entry.name, 0);
    const double step =
        entry.optimizer.normalization == policy::Normalization::none
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
