// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <span>
#include <string>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::nn {

/// Mean cross-entropy of rows of logits against class ids, and its gradient.
/// Equation: loss = mean over rows with a target of (log Σ e^z - z_target), in nats; there dz = (softmax(z) - 1_target)/rows,
///           and 0 in rows whose target is no_target
/// Shapes:   logits (N, V), targets (N) -> dlogits (N, V), row_losses (1, N)
/// Accuracy: stable: the largest logit is taken out before the exponential.
/// Throws:   InvalidInput for a target that is neither in [0, V) nor no_target, and without any in [0, V).
template <class Scalar>
double cross_entropy(const ConstView<Scalar>& logits, std::span<const int> targets,
                     View<Scalar> dlogits, dense::Buffer<double>& row_losses) {
  Eigen::Index with_target = 0;
  for (Eigen::Index i = 0; i < logits.rows(); ++i) {
    const int target = targets[static_cast<std::size_t>(i)];
    if (target == no_target) continue;
    ++with_target;
    if (target < 0 || target >= logits.cols()) {
      throw InvalidInput("target[" + std::to_string(i) + "]", std::to_string(target),
                         "a class in [0, " + std::to_string(logits.cols()) + ")");
    }
  }
  if (with_target == 0) throw InvalidInput("targets", "none", "at least one");
  const auto rows = static_cast<Scalar>(with_target);
  View<double> losses = row_losses.shape(1, logits.rows());
  numeric::parallel_tiles(logits.rows(), 32, [&](Eigen::Index begin, Eigen::Index count) {
    for (Eigen::Index i = begin; i < begin + count; ++i) {
      const int target = targets[static_cast<std::size_t>(i)];
      const auto z = logits.row(i).array();
      auto dz = dlogits.row(i).array();
      if (target == no_target) {
        dz.setZero();
        losses(0, i) = 0;
        continue;
      }
      const Scalar largest = z.maxCoeff();
      dz = (z - largest).exp();
      const Scalar total = dz.sum();
      losses(0, i) = std::log(static_cast<double>(total)) + static_cast<double>(largest) -
                     static_cast<double>(z(target));
      dz *= 1 / (total * rows);
      dz(target) -= 1 / rows;
    }
  });
  return losses.sum() / static_cast<double>(with_target);
}

/// Half the mean squared error, and its gradient.
/// Equation: loss = mean over all entries of (y - target)²/2; dy = (y - target)/entries
/// Shapes:   y, target (N, M) -> dy (N, M)
template <class Scalar>
double mean_squared_error(const ConstView<Scalar>& y, const ConstView<Scalar>& target,
                          View<Scalar> dy) {
  const auto entries = static_cast<Scalar>(y.size());
  dy = (y - target) / entries;
  return 0.5 * static_cast<double>(dy.squaredNorm()) * static_cast<double>(entries);
}

}  // namespace scalewise::nn
