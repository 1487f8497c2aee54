// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers that treat every token alike.
#pragma once

#include <algorithm>

#include "scalewise/kernels/dual.hpp"
#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/relu_piece.hpp"

namespace scalewise::kernels {

/// A dense layer: weights σ_w/√fan_in times standard normals, biases σ_b times standard normals.
/// Equation: K' = σ_w² K + σ_b²; Θ' = K' + σ_w² Θ
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Section 2.
struct Dense {
  double sigma_w = 1;
  double sigma_b = 0;

  struct Own {};

  /// Throws:   InvalidInput for a deviation that is negative or not finite, and for a kernel whose
  ///           diagonal holds no variances.
  Own prepare(const PairKernel& own) const {
    detail::require_nonnegative(sigma_w, "sigma_w");
    detail::require_nonnegative(sigma_b, "sigma_b");
    detail::variances(own);
    return {};
  }

  void map(PairKernel& pair, const Own& /*left*/, const Own& /*right*/) const {
    auto k = pair.nngp.entries();
    auto theta = pair.ntk.entries();
    k = weight() * k + bias();
    theta = k + weight() * theta;
  }

  /// The variance of weights, times the fan-in.
  /// Units:    a variance
  double weight() const { return sigma_w * sigma_w; }
  /// The variance of biases.
  /// Units:    a variance
  double bias() const { return sigma_b * sigma_b; }
};

/// A nonlinearity on every channel.
/// Equation: K' = E f(u)f(v), Θ' = E f'(u)f'(v) Θ, see dual()
/// Source:   Hron et al. 2020, Section 2.
struct Nonlinearity {
  Function function = Function::relu;

  using Own = detail::Spreads;

  /// The deviations of the tokens of one input.
  /// Throws:   InvalidInput for a kernel whose diagonal holds no variances.
  Own prepare(const PairKernel& own) const {
    return detail::spreads(function, detail::variances(own));
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    if (function == Function::relu) {
      return detail::relu_pair(pair, left, right, {});
    }
    auto k = pair.nngp.view();
    auto theta = pair.ntk.view();
    detail::Piece value;
    detail::Piece derivative;
    for (Index b = 0; b < k.cols(); b += detail::piece) {
      const Index size = (std::min)(detail::piece, k.cols() - b);
      const detail::SpreadPiece columns = detail::piece_of(right, b, size);
      for (Index a = 0; a < k.rows(); ++a) {
        auto k_row = k.row(a).segment(b, size).array();
        auto theta_row = theta.row(a).segment(b, size).array();
        detail::dual_piece(function, left.at(a), columns, k_row, value, derivative);
        k_row = value;
        theta_row *= derivative;
      }
    }
  }
};

/// A dense layer and ReLU in one pass over the kernels: Network puts it where one follows the other.
/// Equation: Dense, then Activation
/// Source:   theirs.
struct DenseRelu {
  Dense dense;

  using Own = detail::Spreads;

  /// The deviations of the tokens of one input, after the dense layer.
  /// Throws:   InvalidInput as Dense::prepare().
  Own prepare(const PairKernel& own) const {
    dense.prepare(own);
    return detail::spreads(Function::relu, dense.weight() * detail::variances(own) + dense.bias());
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    detail::relu_pair(pair, left, right, {dense.weight(), dense.bias(), 1});
  }
};

/// LayerNorm over the channels of a token, without gain and bias.
/// Equation: K'_ab = K_ab / √((K_aa + ε)(K_bb + ε)), Θ' likewise, by K
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034), (1.36), (1.53), (1.139).
/// Requires: channels whose mean over channels is zero: what enters comes from dense or attention
///           layers or sums of them, not straight from relu, abs or gelu.
/// Differs:  Hron et al. 2020, Table 1, prints √(Θ_aa Θ_bb) under Θ, which would make its diagonal
///           1; finite networks agree with the variances.
struct LayerNorm {
  double epsilon = 0;

  struct Own {
    Eigen::VectorXd inverse;  // 1/√(K_aa + ε)
  };

  /// Throws:   InvalidInput for a negative ε, or where a token's variance and ε are both 0.
  Own prepare(const PairKernel& own) const {
    detail::require_nonnegative(epsilon, "epsilon");
    const Array v = detail::variances(own) + epsilon;
    if (v.minCoeff() == 0) {
      throw InvalidInput("variance of a token", "0", "a positive one, or a positive epsilon");
    }
    return {v.rsqrt()};
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      auto view = m->view();
      if (pair.diagonal_only) {
        const Index n = (std::min)(view.rows(), view.cols());
        view.diagonal().array() *= left.inverse.head(n).array() * right.inverse.head(n).array();
        continue;
      }
      view.array().colwise() *= left.inverse.array();
      view.array().rowwise() *= right.inverse.transpose().array();
    }
  }
};

}  // namespace scalewise::kernels
