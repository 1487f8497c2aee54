// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/kernels/gram.hpp"
#include "scalewise/kernels/network.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::kernels {

/// Prepares all inputs, on all cores.
/// Shapes:   every input (T, n₀), T its own
/// Throws:   InvalidInput for no input; what Network::prepare() throws.
inline std::vector<PreparedInput> prepare(const Network& network, std::vector<Matrix<>> inputs) {
  if (inputs.empty()) throw InvalidInput("inputs", "0", "at least one");
  std::vector<PreparedInput> prepared(inputs.size());
  numeric::parallel_for(static_cast<Index>(inputs.size()), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    prepared[at] = network.prepare(std::move(inputs[at]));
    prepared[at].last = {};  // not needed, and as large as all the rest
  });
  return prepared;
}

/// The kernels of a network that ends in a readout, pair by pair, for gram() and StoredGram.
/// Requires: both sets outlive it and were prepared by this network, which outlives it too.
class NetworkPairs {
 public:
  NetworkPairs(const Network& network, const std::vector<PreparedInput>& inputs)
      : NetworkPairs(network, inputs, inputs) {}
  NetworkPairs(const Network& network, const std::vector<PreparedInput>& left,
               const std::vector<PreparedInput>& right)
      : network_(&network), left_(&left), right_(&right) {}

  /// Throws:   InvalidInput when the network ends without a readout.
  KernelValue operator()(Index i, Index j) {
    network_->pair((*left_)[static_cast<std::size_t>(i)], (*right_)[static_cast<std::size_t>(j)],
                   memory_);
    if (memory_.rows() != 1 || memory_.cols() != 1) {
      throw InvalidInput(
          "network",
          std::to_string(memory_.rows()) + " x " + std::to_string(memory_.cols()) + " kernels",
          "one number per pair: a readout");
    }
    return {memory_.nngp.read()(0, 0), memory_.ntk.read()(0, 0)};
  }

 private:
  const Network* network_;
  const std::vector<PreparedInput>* left_;
  const std::vector<PreparedInput>* right_;
  PairKernel memory_;
};

}  // namespace scalewise::kernels
