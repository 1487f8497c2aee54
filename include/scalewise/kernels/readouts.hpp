// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers that turn the tokens of an input into one vector, or into means of their neighbours.
#pragma once

#include <string>

#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/token_grid.hpp"

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

/// Every token becomes the average over a window around it; beyond the border are zeros.
/// Equation: K' = P K P'ᵀ, Θ' likewise, P_ac = 1/d_f for the tokens c in the window of a
/// Source:   Li et al. 2019 (arXiv:1911.00809), LAP, with d_f = (2c+1)²; Hron et al. 2020, Section 5.1.
/// Shapes:   (T, T') to the same
struct LocalAveragePool {
  Index filter = 3;  // tokens a side, odd
  GridSides sides = {};

  struct Own {
    Matrix<> weights;  // P
  };

  /// Throws:   InvalidInput for tokens that do not fill the sides, and a filter that is even.
  Own prepare(const PairKernel& own) const { return {weights(own.rows())}; }

  /// P of an input.
  /// Shapes:   (tokens, tokens)
  /// Throws:   InvalidInput as prepare().
  Matrix<> weights(Index tokens) const {
    const detail::Windows windows = detail::windows(sides, tokens, filter, /*padded=*/true);
    Matrix<> p = Matrix<>::Zero(tokens, tokens);
    for (Index a = 0; a < tokens; ++a) {
      for (const Index c : windows.row(a)) {
        if (c >= 0) p(a, c) = 1 / static_cast<double>(windows.cols());
      }
    }
    return p;
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      detail::sandwich(left.weights, m->view(), right.weights,
                       pair.work.shape(pair.rows(), pair.cols()), pair.diagonal_only);
    }
  }
};

}  // namespace scalewise::kernels
