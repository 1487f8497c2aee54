// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What the theory of signal propagation wants to know of a batch.
#pragma once

#include "scalewise/nn/batch.hpp"
#include "scalewise/theory/data.hpp"

namespace scalewise::experiment {

/// How often two tokens of a sequence are the same, or how patches of an image go together.
/// Accuracy: exact, over all pairs of different places of a sequence.
template <class Scalar>
theory::Data batch_statistics(const nn::Batch<Scalar>& batch) {
  const bool patches = batch.patches.rows() > 0;
  const Eigen::Index rows =
      patches ? batch.patches.rows() : static_cast<Eigen::Index>(batch.tokens.size());
  const Eigen::Index tokens = rows / batch.size;
  double same = 0;
  double products = 0;
  for (Eigen::Index i = 0; i < rows; ++i) {
    for (Eigen::Index j = i - i % tokens; j < i; ++j) {
      if (patches) {
        products += static_cast<double>(batch.patches.row(i).dot(batch.patches.row(j)));
      } else if (batch.tokens[static_cast<std::size_t>(i)] ==
                 batch.tokens[static_cast<std::size_t>(j)]) {
        same += 1;
      }
    }
  }
  const double pairs = static_cast<double>(rows) * static_cast<double>(tokens - 1) / 2;
  theory::Data data;
  data.repeats = same / pairs;
  if (patches) {
    data.patch_power = static_cast<double>(batch.patches.squaredNorm()) /
                       static_cast<double>(batch.patches.size());
    data.patch_correlation =
        products / pairs / static_cast<double>(batch.patches.cols()) / data.patch_power;
  }
  return data;
}

}  // namespace scalewise::experiment
