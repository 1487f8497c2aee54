// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <vector>

#include "scalewise/nn/parallel.hpp"
#include "scalewise/nn/parameters.hpp"

namespace scalewise::nn {

enum class Update { sgd, adamw, sign_sgd };

/// Global hyperparameters; the plan's factors multiply them tensor by tensor.
struct OptimizerConfig {
  Update update = Update::adamw;
  double rate = 1e-3;
  double weight_decay = 0;
  double momentum = 0;  // sgd and sign_sgd
  double beta1 = 0.9;   // adamw
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip_norm = 0;  // 0: off
};

/// What an optimizer remembers from step to step; a checkpoint keeps it beside the parameters.
/// Shapes:   first and second moments (1, all entries of all tensors); second of adamw only
template <class Scalar>
struct OptimizerState {
  long steps = 0;
  Matrix<Scalar> first, second;
};

/// Steps parameters along their gradients, each tensor with its planned rate, decay and epsilon.
/// Equation: adamw: m = β1 m + (1-β1) g, v = β2 v + (1-β2) g²,
///           w -= s w + r (m/(1-β1^t)) / (√(v/(1-β2^t)) + ε); sgd: m = μ m + g, w -= s w + r m;
///           sign_sgd: w -= s w + r sign(m); r the scheduled rate times the plan's factor; the shrink
///           s is r times decay where decay is coupled, schedule times decay where independent
/// Accuracy: bit-identical for any number of threads: the work is cut at fixed places.
/// Differs:  an L2 penalty under sgd is the coupled form, which is the same step without momentum.
template <class Scalar>
class PlannedOptimizer {
 public:
  PlannedOptimizer(const Plan& plan, const OptimizerConfig& config)
      : config_(config), decay_(plan.decay) {
    for (const Entry& entry : plan.entries) {
      factors_.push_back(
          {entry.learning_rate.value, entry.weight_decay.value, entry.epsilon.value});
    }
    const auto count = static_cast<Eigen::Index>(plan.parameter_count());
    state_.first.setZero(1, count);
    if (config_.update == Update::adamw) state_.second.setZero(1, count);
  }

  /// One step at `schedule` times the peak rate. Returns the gradient's norm before clipping.
  double step(Parameters<Scalar>& parameters, double schedule = 1) {
    ++state_.steps;
    const double norm = gradient_norm(parameters);
    const bool clips = config_.clip_norm > 0 && norm > config_.clip_norm;
    const double clip = clips ? config_.clip_norm / norm : 1;
    Eigen::Index offset = 0;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Eigen::Index size = parameters.value(i).size();
      parallel_tiles(size, tile, [&](Eigen::Index begin, Eigen::Index rows) {
        update(parameters, factors_[i], schedule, clip, offset + begin, rows);
      });
      offset += size;
    }
    return norm;
  }

  OptimizerState<Scalar>& state() { return state_; }
  const OptimizerState<Scalar>& state() const { return state_; }

  /// What the optimizer really uses for a tensor, to be checked against the plan.
  double rate(std::size_t i, double schedule = 1) const {
    return config_.rate * schedule * factors_[i].rate;
  }
  double epsilon(std::size_t i) const { return config_.epsilon * factors_[i].epsilon; }
  double shrink(std::size_t i, double schedule = 1) const {
    return shrink_of(factors_[i], schedule);
  }

 private:
  struct Factors {
    double rate;
    double decay;
    double epsilon;
  };

  static constexpr Eigen::Index tile = 1 << 14;

  double shrink_of(const Factors& factors, double schedule) const {
    const double coupled = decay_ == DecayForm::independent ? 1 : config_.rate * factors.rate;
    return schedule * coupled * config_.weight_decay * factors.decay;
  }

  /// Sum of squares, tile by tile and then in order.
  double gradient_norm(Parameters<Scalar>& parameters) {
    const View<Scalar> g = parameters.gradients();
    partial_.assign(static_cast<std::size_t>((g.size() + tile - 1) / tile), 0);
    parallel_tiles(g.size(), tile, [&](Eigen::Index begin, Eigen::Index size) {
      partial_[static_cast<std::size_t>(begin / tile)] =
          g.middleCols(begin, size).template cast<double>().squaredNorm();
    });
    double sum = 0;
    for (const double part : partial_) sum += part;
    return std::sqrt(sum);
  }

  void update(Parameters<Scalar>& parameters, const Factors& factors, double schedule, double clip,
              Eigen::Index begin, Eigen::Index size) {
    const auto rate = static_cast<Scalar>(config_.rate * schedule * factors.rate);
    const auto keep = static_cast<Scalar>(1 - shrink_of(factors, schedule));
    const auto factor = static_cast<Scalar>(clip);
    Scalar* w = parameters.values().data() + begin;
    const Scalar* g = parameters.gradients().data() + begin;
    Scalar* m = state_.first.data() + begin;
    if (config_.update != Update::adamw) {
      const auto momentum = static_cast<Scalar>(config_.momentum);
      const bool sign = config_.update == Update::sign_sgd;
      for (Eigen::Index i = 0; i < size; ++i) {
        m[i] = momentum * m[i] + factor * g[i];
        const Scalar direction = !sign ? m[i] : static_cast<Scalar>((m[i] > 0) - (m[i] < 0));
        w[i] = keep * w[i] - rate * direction;
      }
      return;
    }
    const auto t = static_cast<double>(state_.steps);
    const auto beta1 = static_cast<Scalar>(config_.beta1);
    const auto beta2 = static_cast<Scalar>(config_.beta2);
    const auto first = static_cast<Scalar>(1 / (1 - std::pow(config_.beta1, t)));
    const auto second = static_cast<Scalar>(1 / (1 - std::pow(config_.beta2, t)));
    const auto epsilon = static_cast<Scalar>(config_.epsilon * factors.epsilon);
    Scalar* v = state_.second.data() + begin;
    for (Eigen::Index i = 0; i < size; ++i) {
      const Scalar gradient = factor * g[i];
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      w[i] = keep * w[i] - rate * (m[i] * first) / (std::sqrt(v[i] * second) + epsilon);
    }
  }

  OptimizerConfig config_;
  DecayForm decay_;
  std::vector<Factors> factors_;
  OptimizerState<Scalar> state_;
  std::vector<double> partial_;
};

/// Scales the matrices of a normalized transformer to unit length along d_model: rows of the
/// embedding, of attention output and of MLP down, columns of the others. Before every step.
/// Source:   Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 2.
template <class Scalar>
void normalize_matrices(Parameters<Scalar>& parameters, const Plan& plan) {
  if (plan.shape.blocks != Blocks::normalized) return;
  for (std::size_t i = 0; i < plan.entries.size(); ++i) {
    const Group group = plan.entries[i].group;
    const Role role = role_of(group);
    if (role != Role::input && role != Role::hidden && role != Role::output) continue;
    View<Scalar> w = parameters.value(i);
    const bool rows = group == Group::token_embedding || group == Group::attention_output ||
                      group == Group::mlp_down;
    if (rows) {
      w.rowwise().normalize();
    } else {
      w.colwise().normalize();
    }
  }
}

}  // namespace scalewise::nn
