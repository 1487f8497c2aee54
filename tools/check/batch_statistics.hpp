// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Statistics of a batch that the theory of signal propagation needs.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "check/sequence_pairs.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/propagation/data.hpp"

namespace scalewise::experiment {

/// How often two tokens of a sequence are the same, or how patches of an image go together.
/// Accuracy: exact, over all pairs of different places of a sequence.
template <class Scalar>
propagation::Data batch_statistics(const nn::Batch<Scalar>& batch) {
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
  // A token alone has no pairs, and none that are the same.
  const double pairs =
      tokens > 1 ? static_cast<double>(rows) * static_cast<double>(tokens - 1) / 2 : 1;
  propagation::Data data;
  data.repeats = same / pairs;
  if (patches) {
    data.patch_power = static_cast<double>(batch.patches.squaredNorm()) /
                       static_cast<double>(batch.patches.size());
    data.patch_correlation =
        products / pairs / static_cast<double>(batch.patches.cols()) / data.patch_power;
  }
  return data;
}

/// Every sequence of a batch.
template <class Scalar>
std::vector<SequencePairs> sequence_pairs(const nn::Batch<Scalar>& batch) {
  const bool patches = batch.patches.rows() > 0;
  const Eigen::Index rows =
      patches ? batch.patches.rows() : static_cast<Eigen::Index>(batch.tokens.size());
  const auto tokens = static_cast<std::size_t>(rows / batch.size);
  std::vector<SequencePairs> all;
  for (std::size_t b = 0; b < static_cast<std::size_t>(batch.size); ++b) {
    SequencePairs pairs{propagation::TokenCovariance(tokens), propagation::TokenCovariance(tokens)};
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t u = 0; u < tokens; ++u) {
        const std::size_t i = b * tokens + t;
        const std::size_t j = b * tokens + u;
        if (patches) {
          const auto row = [&](std::size_t at) {
            return batch.patches.row(static_cast<Eigen::Index>(at));
          };
          pairs.content.at(t, u) =
              static_cast<double>(row(i).dot(row(j))) / static_cast<double>(batch.patches.cols());
        } else {
          pairs.content.at(t, u) = batch.tokens[i] == batch.tokens[j] ? 1 : 0;
          pairs.same_target.at(t, u) = batch.targets[i] == batch.targets[j] ? 1 : 0;
        }
      }
    }
    all.push_back(std::move(pairs));
  }
  return all;
}

}  // namespace scalewise::experiment
