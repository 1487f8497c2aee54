// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers that turn the tokens of an input into one vector.
#pragma once

#include <string>

#include "scalewise/kernels/pair_kernel.hpp"

namespace scalewise::kernels {

/// The tokens side by side as one long vector; tokens that only one of two inputs has meet padding,
/// which is zero.
/// Equation: K' = (1/T) Σ_a K_aa(x,x'), Θ' likewise
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 5, FLATTEN.
struct Flatten {
  /// Tokens with padding; 0: inputs have equal lengths and none.
  Index padded_length = 0;

  struct Own {
    Index length = 0;
  };

  /// Throws:   InvalidInput for an input longer than the padded length.
  Own prepare(const PairKernel& own) const {
    if (padded_length != 0 && own.rows() > padded_length) {
      throw InvalidInput("input length", std::to_string(own.rows()),
                         "at most the padded length, " + std::to_string(padded_length));
    }
    return {padded_length == 0 ? own.rows() : padded_length};
  }

  /// Throws:   InvalidInput for inputs of different lengths without a padded length.
  void map(PairKernel& pair, const Own& left, const Own& right) const {
    if (left.length != right.length) {
      throw InvalidInput("input lengths",
                         std::to_string(left.length) + " and " + std::to_string(right.length),
                         "equal ones", "set the padded length of the flatten layer");
    }
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      const double mean = m->read().diagonal().sum() / static_cast<double>(left.length);
      m->shape(1, 1)(0, 0) = mean;
    }
  }
};

/// The average over tokens.
/// Equation: K' = 1/(T T') Σ_ab K_ab, Θ' likewise
/// Source:   Hron et al. 2020, Section 5, GAP.
struct GlobalAveragePool {
  struct Own {};

  Own prepare(const PairKernel& /*own*/) const { return {}; }

  void map(PairKernel& pair, const Own& /*left*/, const Own& /*right*/) const {
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      const double mean = m->read().mean();
      m->shape(1, 1)(0, 0) = mean;
    }
  }
};

}  // namespace scalewise::kernels
