// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Gradients of whole models by central differences, and batches for them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/nn/initialize.hpp"
#include "support/numeric_gradient.hpp"

namespace scalewise::test {

/// Moves every parameter away from its start, where gains are 1, biases 0 and some tensors zero, by
/// a normal of the given deviation as it acts, which is after the multiplier.
inline void shake(nn::Parameters<double>& parameters, const Plan& plan, double deviation = 0.3) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numeric::RandomStream stream(3, parameters.name(i));
    View<double> value = parameters.value(i);
    const double by = deviation / plan.entries[i].multiplier.value;
    for (Index r = 0; r < value.rows(); ++r) {
      for (Index c = 0; c < value.cols(); ++c) value(r, c) += by * stream.normal();
    }
  }
}

/// A model that is ready for its gradient to be tested.
inline void prepare(nn::Transformer<double>& model, const Plan& plan) {
  initialize(model.parameters(), plan, 7, nn::BaseDeviation::uniform(0.1));
  shake(model.parameters(), plan);
}

/// Compares one tensor's gradient with that in `gradients`, laid out as parameters().gradients(), along three random
/// directions of length 1, in each of which every entry counts; with the dropout of a draw where one is given.
inline GradientError tensor_error(nn::Transformer<double>& model, const Plan& plan,
                                  const nn::Batch<double>& batch, std::size_t tensor,
                                  const Matrix<double>& gradients,
                                  std::optional<std::uint64_t> draw = {}) {
  const auto loss = [&] { return draw ? model.loss(batch, *draw) : model.loss(batch); };
  const std::string name = model.parameters().name(tensor);
  View<double> value = model.parameters().value(tensor);
  const Index offset = value.data() - model.parameters().values().data();
  const Matrix<double> analytic = ConstView<double>(
      gradients.data() + offset, value.rows(), value.cols(), Eigen::OuterStride<>(value.cols()));
  const Matrix<double> kept = value;
  const double multiplier = plan.entries[tensor].multiplier.value;
  const double step = step_at(largest(kept) * multiplier) / multiplier;
  const double floor =
      gradient_floor(analytic, std::max(1.0, loss()), largest(gradients), multiplier);
  GradientError worst;
  for (const char* number : {"1", "2", "3"}) {
    const std::string along = name + ", direction " + number;
    const Matrix<double> direction = normal_matrix(kept.rows(), kept.cols(), along).normalized();
    value = kept + step * direction;
    const double above = loss();
    value = kept - step * direction;
    const double below = loss();
    worst.offer(along, analytic.cwiseProduct(direction).sum(), (above - below) / (2 * step), floor);
  }
  value = kept;
  return worst;
}

/// Compares the gradient of every tensor.
inline GradientError model_error(nn::Transformer<double>& model, const Plan& plan,
                                 const nn::Batch<double>& batch, const Matrix<double>& gradients,
                                 std::optional<std::uint64_t> draw = {}) {
  GradientError worst;
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    worst.offer(tensor_error(model, plan, batch, i, gradients, draw));
  }
  return worst;
}

/// Tensors whose gradient is nowhere above rounding: the model does not read them.
inline std::vector<std::string> idle_tensors(nn::Transformer<double>& model) {
  std::vector<std::string> idle;
  for (std::size_t i = 0; i < model.parameters().size(); ++i) {
    if (model.parameters().gradient(i).cwiseAbs().maxCoeff() > 1e-6) continue;
    idle.push_back(model.parameters().name(i));
  }
  return idle;
}

/// The plan with every multiplier a number of its own, those that no rule has included.
inline Plan scrambled(Plan plan) {
  numeric::RandomStream stream(11, "multipliers");
  const auto scramble = [&](double& value) { value = 0.6 + 0.8 * stream.uniform(); };
  for (Entry& entry : plan.entries) scramble(entry.multiplier.value);
  scramble(plan.model.attention_scale.value);
  scramble(plan.model.logit_multiplier.value);
  for (Residual& residual : plan.model.residuals) {
    scramble(residual.skip.value);
    scramble(residual.branch.value);
  }
  return plan;
}

/// A batch that fits a shape: `tokens` per sequence, and `source_tokens` of the encoder.
inline nn::Batch<double> random_batch(const Shape& shape, Index size, Index tokens,
                                      Index source_tokens) {
  nn::Batch<double> batch;
  batch.size = size;
  if (shape.input == Input::patch) {
    batch.patches = normal_matrix(size * tokens, shape.patch_dim, "patches");
    batch.targets = random_ids(size, static_cast<int>(shape.classes), "classes");
    return batch;
  }
  const int vocab = static_cast<int>(shape.vocab);
  batch.tokens = random_ids(size * tokens, vocab, "tokens");
  batch.targets = random_ids(size * tokens, vocab, "targets");
  if (shape.encoder_depth > 0) batch.source = random_ids(size * source_tokens, vocab, "source");
  return batch;
}

}  // namespace scalewise::test
