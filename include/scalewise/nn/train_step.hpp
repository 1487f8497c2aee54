// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/transformer.hpp"

namespace scalewise::nn {

/// One step of training, in which the matrices of a block are stepped as soon as their gradients are known.
/// The same bits as loss_and_gradient() and PlannedOptimizer::step(). A model that was made with
/// Gradients::block_by_block needs less memory for it: that of the gradients of one block's matrices, and of the tensors
/// in no block.
/// Units:    of the result nats, before the step; `schedule` a factor of the peak rate
/// Throws:   InvalidInput for a batch that does not fit the model, parameters of another size than the
///           optimizer's, and an optimizer that clips gradients, which needs all of them at once.
template <class Scalar>
double train_step(Transformer<Scalar>& model, PlannedOptimizer<Scalar>& optimizer,
                  const Batch<Scalar>& batch, std::uint64_t draw = 0, double schedule = 1) {
  const double loss = model.loss(batch, draw);
  optimizer.begin_step(model.parameters());
  model.backward(
      [&](const BlockId& block) { optimizer.step_block(model.parameters(), block, schedule); });
  return loss;
}

}  // namespace scalewise::nn
