// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The exact gradient of one logit, through the public interface of the reference transformer.
#pragma once

#include "instances/transformer.hpp"

namespace scalewise::experiment {

/// Writes the gradient of logits(row, column) to model.parameters().gradients().
/// Equation: the gradient of the squared loss is Jᵀ(z - y)/N with N logits z, so the targets
///           y = z - N e_k make it Jᵀ e_k, the k-th row of the Jacobian
/// Accuracy: that of the backward pass: z - y is 0 but at k, where it is N up to one rounding. Two
///           forward passes, whose logits agree to the last bit.
/// Requires: no dropout.
template <class Scalar>
void logit_gradient(nn::Transformer<Scalar>& model, nn::Batch<Scalar> batch, Eigen::Index row,
                    Eigen::Index column) {
  batch.values.resize(0, 0);
  model.loss(batch);
  batch.values = model.logits();
  batch.values(row, column) -= static_cast<Scalar>(batch.values.size());
  model.loss_and_gradient(batch);
}

}  // namespace scalewise::experiment
