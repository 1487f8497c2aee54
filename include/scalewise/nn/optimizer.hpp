// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/nn/orthogonal.hpp"
#include "scalewise/nn/parameters.hpp"
#include "scalewise/numeric/parallel.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::nn {

/// Global hyperparameters; the plan's factors multiply them tensor by tensor.
struct OptimizerConfig {
  double rate = 1e-3;
  double weight_decay = 0;
  double momentum = 0;  // sgd, sign-sgd and muon
  double beta1 = 0.9;   // adamw
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip_norm = 0;  // 0: off
};

/// Throws:   InvalidInput for a number that no optimizer can use.
inline void check(const OptimizerConfig& config) {
  const auto require = [](const char* field, double value, bool good, const char* expected) {
    if (!good) throw InvalidInput(field, numeric::number_text(value), expected);
  };
  const auto positive = [&](const char* field, double value) {
    require(field, value, value >= 0 && std::isfinite(value), "a number that is not negative");
  };
  const auto fraction = [&](const char* field, double value) {
    require(field, value, value >= 0 && value < 1, "a number from 0 to below 1");
  };
  positive("rate", config.rate);
  positive("weight_decay", config.weight_decay);
  positive("epsilon", config.epsilon);
  positive("clip_norm", config.clip_norm);
  fraction("momentum", config.momentum);
  fraction("beta1", config.beta1);
  fraction("beta2", config.beta2);
}

/// Length of the gradient of all parameters together.
/// Units:    those of the gradient; √Σg², not the root mean square
/// Accuracy: the same bits for any number of threads: sums of tiles are added in order.
template <class Scalar>
double gradient_norm(const Parameters<Scalar>& parameters) {
  std::array<double, 1024> partial{};  // a tile has at least 2^14 entries
  constexpr Eigen::Index most = 1024;
  const ConstView<Scalar> g = parameters.gradients();
  const Eigen::Index tile = std::max<Eigen::Index>(1 << 14, (g.size() + most - 1) / most);
  numeric::parallel_tiles(g.size(), tile, [&](Eigen::Index begin, Eigen::Index size) {
    double sum = 0;
    for (Eigen::Index i = begin; i < begin + size; i += 256) {
      const Eigen::Index n = std::min<Eigen::Index>(256, begin + size - i);
      sum += g.row(0).segment(i, n).template cast<double>().squaredNorm();
    }
    partial[static_cast<std::size_t>(begin / tile)] = sum;
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return std::sqrt(sum);
}

/// The state of an optimizer from step to step; a checkpoint keeps it with the parameters.
/// Shapes:   first and second moments (1, all entries of all tensors); second of adamw only
template <class Scalar>
struct OptimizerState {
  long steps = 0;
  dense::Memory<Scalar> first, second;
};

/// Steps parameters along their gradients, each tensor with its planned rate, decay and epsilon.
/// The optimizer is the plan's.
/// Equation: adamw: m = β1 m + (1-β1) g, v = β2 v + (1-β2) g²,
///           w -= s w + r (m/(1-β1^t)) / (√(v/(1-β2^t)) + ε); sgd: m = μ m + g, w -= s w + r m;
///           sign-sgd: w -= s w + r sign(m); muon, on hidden matrices: w -= s w + r f orthogonal(m), f the
///           optimizer's own factor, and adamw elsewhere; r the scheduled rate times the plan's factor; the shrink
///           s is r times decay where decay is coupled, schedule times decay where independent
/// Accuracy: bit-identical for any number of threads: the work is cut at fixed places.
/// Throws:   InvalidInput for a config that check() refuses, an optimizer of the plan that is none of
///           these, L2 decay under another than sgd, parameters of another size, and a plan of 2^63 numbers or more.
/// Differs:  an L2 penalty under sgd is the coupled form, which is the same step without momentum.
template <class Scalar>
class PlannedOptimizer {
 public:
  // An embedding has the optimizer that steps each number by itself, under Muon too.
  PlannedOptimizer(const Plan& plan, const OptimizerConfig& config)
      : config_(config),
        decay_(plan.decay),
        method_(method_of(policy::optimizer_of(plan.optimizer, Group::token_embedding))) {
    check(config);
    if (decay_ == DecayForm::l2 && method_.optimizer != sgd) {
      throw InvalidInput("decay", "l2", "coupled or independent",
                         "the reference transformer has L2 penalties under sgd alone");
    }
    const auto count = static_cast<Eigen::Index>(plan.parameter_count());
    state_.first = dense::Memory<Scalar>(count);
    if (method_.has_second_moment) state_.second = dense::Memory<Scalar>(count);
    constexpr Eigen::Index tile = 1 << 12;
    Eigen::Index offset = 0;
    for (const Entry& entry : plan.entries) {
      const auto size = static_cast<Eigen::Index>(entry.size());
      const bool whole = entry.optimizer.normalization == policy::Normalization::by_matrix;
      if (whole) {
        if (!is_muon(entry.optimizer)) refuse(entry.optimizer);
        add_whole(entry, offset);
      }
      for (Eigen::Index i = 0; i < size && !whole; i += tile) {
        tiles_.push_back({factors_.size(), offset, i, (std::min)(tile, size - i)});
      }
      offset += size;
      factors_.push_back(
          {entry.learning_rate.value, entry.weight_decay.value, entry.epsilon.value});
    }
  }

  /// Called with every tensor's change during a step.
  using UpdateObserver = std::function<void(const std::string& name, const ConstView<Scalar>&)>;

  /// One step at `schedule` times the peak rate. `observer` sees what was added to each tensor.
  void step(Parameters<Scalar>& parameters, double schedule = 1,
            const UpdateObserver& observer = {});

  /// The same step, block by block: begin_step() once, then step_block() for each block whose gradients are
  /// known, and with BlockId{} for the tensors in no block. Same bits as step().
  /// Units:    `schedule` a factor of the peak rate
  /// Throws:   InvalidInput for parameters of another size, and where gradients are clipped, since their norm
  ///           is not known before the last one is.
  void begin_step(const Parameters<Scalar>& parameters);
  void step_block(Parameters<Scalar>& parameters, const BlockId& block, double schedule = 1) {
    update(parameters, blocks_[block], schedule, 1);
  }

  OptimizerState<Scalar>& state() { return state_; }
  const OptimizerState<Scalar>& state() const { return state_; }

  /// The rate that the optimizer really uses for a tensor, to be checked against the plan.
  /// Units:    absolute, of a step at `schedule` times the peak rate
  double rate(std::size_t i, double schedule = 1) const {
    return config_.rate * schedule * factors_[i].rate;
  }
  /// The epsilon that is added after the square root.
  /// Units:    absolute, as the gradient
  double epsilon(std::size_t i) const { return config_.epsilon * factors_[i].epsilon; }
  /// The part of the weights that decay takes off in a step.
  /// Units:    a share of the weights
  double shrink(std::size_t i, double schedule = 1) const {
    return shrink_of(factors_[i], schedule);
  }

 private:
  struct StepFactors {
    double rate;
    double decay;
    double epsilon;
  };

  /// A part of a tensor, of the size that one thread works on at a time.
  struct Tile {
    std::size_t tensor;
    Eigen::Index offset;  // of the tensor, in the row of all values
    Eigen::Index begin;   // in the tensor
    Eigen::Index size;
  };

  /// A matrix that is normalized as a whole; experts are as many, in one tensor.
  struct WholeMatrix {
    std::size_t tensor;
    Eigen::Index begin, in_tensor, rows, columns;
    double own_factor;
  };

  void add_whole(const Entry& entry, Eigen::Index offset) {
    const auto rows = architecture::is_of_experts(entry.group)
                          ? static_cast<Eigen::Index>(entry.fan_in)
                          : Eigen::Index{entry.rows};
    for (Eigen::Index row = 0; row < entry.rows; row += rows) {
      whole_.push_back({factors_.size(), offset + row * entry.columns, row * entry.columns, rows,
                        entry.columns,
                        policy::own_factor(entry.optimizer, entry.fan_in, entry.fan_out)});
    }
  }

  /// Which of tiles_ and whole_ are of one block.
  struct Work {
    std::vector<std::size_t> tiles, whole;
  };

  void require_size(const Parameters<Scalar>& parameters) const {
    if (parameters.values().size() == state_.first.size()) return;
    throw InvalidInput("parameters", std::to_string(parameters.values().size()) + " numbers",
                       std::to_string(state_.first.size()) + ", as the plan has");
  }

  double shrink_of(const StepFactors& factors, double schedule) const {
    const double coupled = decay_ == DecayForm::independent ? 1 : config_.rate * factors.rate;
    return schedule * coupled * config_.weight_decay * factors.decay;
  }

  void update(Parameters<Scalar>& parameters, const Work& work, double schedule, double clip) {
    numeric::parallel_parts(static_cast<Eigen::Index>(work.tiles.size()), [&](Eigen::Index i) {
      update(parameters, tiles_[work.tiles[static_cast<std::size_t>(i)]], schedule, clip);
    });
    numeric::parallel_for(static_cast<Eigen::Index>(work.whole.size()), [&](Eigen::Index i) {
      update(parameters, whole_[work.whole[static_cast<std::size_t>(i)]], schedule, clip);
    });
  }

  void update(Parameters<Scalar>& parameters, const Tile& tile, double schedule, double clip) {
    const StepFactors& factors = factors_[tile.tensor];
    const auto rate = static_cast<Scalar>(config_.rate * schedule * factors.rate);
    const auto keep = static_cast<Scalar>(1 - shrink_of(factors, schedule));
    const auto factor = static_cast<Scalar>(clip);
    constexpr Eigen::Index chunk = 1024;  // all that one pass touches fits in the first cache
    Scalar* gradient = parameters.gradient(tile.tensor).data();
    for (Eigen::Index at = tile.begin; at < tile.begin + tile.size; at += chunk) {
      const Eigen::Index n = (std::min)(chunk, tile.begin + tile.size - at);
      const Eigen::Index i = tile.offset + at;
      Span w(parameters.values().data() + i, n);
      const Span g(gradient + at, n);
      Span m(state_.first.data() + i, n);
      Span v(state_.second.data() + (method_.has_second_moment ? i : 0),
             method_.has_second_moment ? n : 0);
      (this->*method_.step)(factors, {rate, keep, factor}, w, g, m, v);
    }
  }

  void update(Parameters<Scalar>& parameters, const WholeMatrix& whole, double schedule,
              double clip) {
    const StepFactors& factors = factors_[whole.tensor];
    const Eigen::Index size = whole.rows * whole.columns;
    Span w(parameters.values().data() + whole.begin, size);
    const Span g(parameters.gradient(whole.tensor).data() + whole.in_tensor, size);
    Span m(state_.first.data() + whole.begin, size);
    m = static_cast<Scalar>(config_.momentum) * m + static_cast<Scalar>(clip) * g;
    Matrix<Scalar> along = orthogonal<Scalar>(
        {m.data(), whole.rows, whole.columns, Eigen::OuterStride<>(whole.columns)});
    const auto rate =
        static_cast<Scalar>(config_.rate * schedule * factors.rate * whole.own_factor);
    const auto keep = static_cast<Scalar>(1 - shrink_of(factors, schedule));
    w = keep * w - rate * Span(along.data(), size);
  }

  using Span = Eigen::Map<Eigen::Array<Scalar, 1, Eigen::Dynamic>>;

  /// The factors of the direction, the weights and the gradient in a step of one tensor.
  struct Amounts {
    Scalar rate, keep, clip;
  };

  void adamw_step(const StepFactors& factors, const Amounts& a, Span& w, const Span& g, Span& m,
                  Span& v) const {
    const auto t = static_cast<double>(state_.steps);
    const auto beta1 = static_cast<Scalar>(config_.beta1);
    const auto beta2 = static_cast<Scalar>(config_.beta2);
    const auto first = static_cast<Scalar>(1 / (1 - std::pow(config_.beta1, t)));
    const auto second = static_cast<Scalar>(1 / (1 - std::pow(config_.beta2, t)));
    const auto epsilon = static_cast<Scalar>(config_.epsilon * factors.epsilon);
    m = beta1 * m + ((1 - beta1) * a.clip) * g;
    v = beta2 * v + (1 - beta2) * (a.clip * g).square();
    w = a.keep * w - (a.rate * first) * m / ((v * second).sqrt() + epsilon);
  }
  void sgd_step(const StepFactors&, const Amounts& a, Span& w, const Span& g, Span& m,
                Span&) const {
    m = static_cast<Scalar>(config_.momentum) * m + a.clip * g;
    w = a.keep * w - a.rate * m;
  }
  void sign_step(const StepFactors&, const Amounts& a, Span& w, const Span& g, Span& m,
                 Span&) const {
    m = static_cast<Scalar>(config_.momentum) * m + a.clip * g;
    w = a.keep * w - a.rate * m.sign();
  }

  struct Method {
    Optimizer optimizer;
    bool has_second_moment;
    void (PlannedOptimizer::*step)(const StepFactors&, const Amounts&, Span&, const Span&, Span&,
                                   Span&) const;
  };

  static Method method_of(const Optimizer& optimizer) {
    for (const Method& method : {Method{adamw, true, &PlannedOptimizer::adamw_step},
                                 Method{sgd, false, &PlannedOptimizer::sgd_step},
                                 Method{sign_sgd, false, &PlannedOptimizer::sign_step}}) {
      if (method.optimizer == optimizer) return method;
    }
    refuse(optimizer);
  }

  /// All of Muon's names differ in their own factors alone.
  static bool is_muon(const Optimizer& optimizer) {
    return optimizer == muon || optimizer.own_factor != policy::OwnFactor::one;
  }

  [[noreturn]] static void refuse(const Optimizer& optimizer) {
    throw InvalidInput("optimizer", std::string(optimizer.name), "adamw, sgd, sign-sgd or a Muon",
                       "the reference transformer has no other");
  }

  OptimizerConfig config_;
  DecayForm decay_;
  Method method_;
  std::vector<StepFactors> factors_;
  OptimizerState<Scalar> state_;
  std::vector<Tile> tiles_;
  std::vector<WholeMatrix> whole_;
  std::map<BlockId, Work> blocks_;  // of the last begin_step()
};

template <class Scalar>
void PlannedOptimizer<Scalar>::begin_step(const Parameters<Scalar>& parameters) {
  if (config_.clip_norm > 0) {
    throw InvalidInput("clip_norm", numeric::number_text(config_.clip_norm),
                       "0 in a step block by block", "clipping needs all gradients at once");
  }
  require_size(parameters);
  for (auto& [block, work] : blocks_) {  // keeps their memory
    work.tiles.clear();
    work.whole.clear();
  }
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    blocks_[parameters.block(tiles_[i].tensor)].tiles.push_back(i);
  }
  for (std::size_t i = 0; i < whole_.size(); ++i) {
    blocks_[parameters.block(whole_[i].tensor)].whole.push_back(i);
  }
  ++state_.steps;
}

template <class Scalar>
void PlannedOptimizer<Scalar>::step(Parameters<Scalar>& parameters, double schedule,
                                    const UpdateObserver& observer) {
  require_size(parameters);
  parameters.require_all_gradients();
  ++state_.steps;
  double clip = 1;
  if (config_.clip_norm > 0) {
    const double norm = gradient_norm(parameters);
    if (norm > config_.clip_norm) clip = config_.clip_norm / norm;
  }
  Matrix<Scalar> before;
  if (observer) before = parameters.values();
  numeric::parallel_parts(static_cast<Eigen::Index>(tiles_.size()), [&](Eigen::Index i) {
    update(parameters, tiles_[static_cast<std::size_t>(i)], schedule, clip);
  });
  numeric::parallel_for(static_cast<Eigen::Index>(whole_.size()), [&](Eigen::Index i) {
    update(parameters, whole_[static_cast<std::size_t>(i)], schedule, clip);
  });
  if (!observer) return;
  before = parameters.values() - before;
  const Scalar* change = before.data();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const View<Scalar> value = parameters.value(i);
    observer(parameters.name(i), {change, value.rows(), value.cols(), value.outerStride()});
    change += value.size();
  }
}

}  // namespace scalewise::nn
