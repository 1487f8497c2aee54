// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Layers that treat every token alike, and convolutions.
#pragma once

#include <algorithm>

#include "scalewise/kernels/dual.hpp"
#include "scalewise/kernels/pair_kernel.hpp"
#include "scalewise/kernels/relu_piece.hpp"
#include "scalewise/kernels/token_grid.hpp"

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

/// A convolution: a dense layer that sees all tokens of a window, stride one. Beyond the border of a padded grid
/// are zeros.
/// Equation: K'_ab = σ_w² (1/d_f) Σ_i K_{a+i, b+i} + σ_b², over the d_f places i of the window;
///           Θ'_ab = K'_ab + σ_w² (1/d_f) Σ_i Θ_{a+i, b+i}
/// Source:   Novak et al. 2019 (arXiv:1810.05148), Garriga-Alonso et al. 2019 (arXiv:1808.05587); Hron et al. 2020,
///           Proposition 2 and Appendix A.1.1.
/// Shapes:   (T, T') to the same where padded; otherwise sides are filter - 1 shorter
struct Convolution {
  double sigma_w = 1;
  double sigma_b = 0;
  Index filter = 3;  // tokens a side, odd
  GridSides sides = {};
  bool padded = true;

  struct Own {
    detail::Windows windows;
  };

  /// Throws:   InvalidInput as Dense::prepare(), for tokens that do not fill the sides, and a filter that is even or
  ///           does not fit.
  Own prepare(const PairKernel& own) const {
    Dense{sigma_w, sigma_b}.prepare(own);
    return {detail::windows(sides, own.rows(), filter, padded)};
  }

  void map(PairKernel& pair, const Own& left, const Own& right) const {
    for (auto* m : {&pair.nngp, &pair.ntk}) {
      const auto before = m->read();
      auto after = pair.work.shape(left.windows.rows(), right.windows.rows());
      for (Index a = 0; a < after.rows(); ++a) {
        for (Index b = 0; b < after.cols(); ++b) after(a, b) = mean(before, left, a, right, b);
      }
      m->shape(after.rows(), after.cols()) = after;
    }
    Dense{sigma_w, sigma_b}.map(pair, {}, {});
  }

 private:
  static double mean(const ConstView<double>& m, const Own& left, Index a, const Own& right,
                     Index b) {
    double sum = 0;
    for (Index i = 0; i < left.windows.cols(); ++i) {
      const Index from = left.windows(a, i);
      const Index to = right.windows(b, i);
      if (from >= 0 && to >= 0) sum += m(from, to);
    }
    return sum / static_cast<double>(left.windows.cols());
  }
};

/// A nonlinearity on every channel.
/// Equation: K' = E f(u)f(v), Θ' = E f'(u)f'(v) Θ, see dual()
/// Source:   Hron et al. 2020, Section 2.
struct Nonlinearity {
  Function function = Function::relu;

  using Own = detail::Spreads;

  /// The deviations of the tokens of one input.
  /// Throws:   InvalidInput for a kernel whose diagonal holds no variances, or, of erf and gelu, one above 1e150.
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
///           layers or sums of them, not straight from relu, abs or gelu. Network refuses these.
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
