// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Attention networks on digits, for programs that compare finite ones with their kernels.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "lab/programs/kernel/classify.hpp"
#include "lab/programs/kernel/samples.hpp"
#include "scalewise/kernels/network_gram.hpp"

namespace scalewise::experiment {

/// Variances of a weight and of a bias.
struct NetworkVariances {
  double weight = 2;
  double bias = 0.01;
};

/// Attention with scores over the root of d and independent queries and keys; `weights` is softmax, relu
/// or identity.
inline kernels::SelfAttention attention_named(const std::string& weights, double variance) {
  using WeightFunction = kernels::SelfAttention::WeightFunction;
  kernels::SelfAttention attention;
  attention.scores = kernels::SelfAttention::ScoreScale::over_root_d;
  attention.sigma_q = attention.sigma_k = attention.sigma_v = std::sqrt(variance);
  if (weights == "relu") attention.weights = WeightFunction::relu;
  if (weights == "identity") attention.weights = WeightFunction::identity;
  return attention;
}

/// NNGP and tangent kernel of all inputs in the limit of infinite width.
inline kernels::GramMatrices limit_of(const std::vector<kernels::Layer>& layers,
                                      const Samples& samples) {
  const kernels::Network network(layers);
  const auto prepared = kernels::prepare(network, samples.inputs);
  return kernels::gram(static_cast<kernels::Index>(prepared.size()),
                       kernels::NetworkPairs(network, prepared));
}

}  // namespace scalewise::experiment
