// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <string>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::kernels {

using Eigen::Index;
using Array = Eigen::ArrayXd;

/// The kernels between the tokens of two inputs x and x', in the limit of infinite width.
/// Equation: nngp_ab = lim (1/n) Σ_i g_ai(x) g_bi(x'); ntk_ab is the same sum of products of the
///           gradients with respect to all parameters so far
/// Source:   Hron et al. 2020 (arXiv:2006.10540), Sections 2 and 3: κ and Θ of what enters a layer.
/// Shapes:   nngp, ntk (T, T'), of the real tokens only
/// A layer maps it in place. Memory only grows, so that a second pair of inputs allocates nothing.
struct PairKernel {
  dense::Buffer<double> nngp;
  dense::Buffer<double> ntk;
  dense::Buffer<double> work;  // of the layers, its contents mean nothing between them
  /// Asks the next layer for the diagonals only; it may leave any numbers elsewhere.
  bool diagonal_only = false;

  Index rows() const { return nngp.rows(); }
  Index cols() const { return nngp.cols(); }
};

namespace detail {

inline void require_finite(const Matrix<>& m, const std::string& field) {
  if (!m.allFinite()) throw InvalidInput(field, "not finite", "finite numbers");
}

/// A nonnegative finite number, such as a variance or its root.
inline void require_nonnegative(double value, const std::string& field) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw InvalidInput(field, numeric::number_text(value), "a finite number that is not negative");
  }
}

/// The variances of the tokens of one input.
/// Throws:   InvalidInput for a kernel that is not square, not finite or negative on its diagonal.
inline Array variances(const PairKernel& own) {
  if (own.rows() != own.cols() || own.rows() == 0) {
    throw InvalidInput("own kernel",
                       std::to_string(own.rows()) + " x " + std::to_string(own.cols()),
                       "as many rows as columns, and at least one");
  }
  const auto k = own.nngp.read();
  for (Index a = 0; a < k.rows(); ++a) {
    if (!(k(a, a) >= 0) || !std::isfinite(k(a, a))) {
      throw InvalidInput("nngp(" + std::to_string(a) + ", " + std::to_string(a) + ")",
                         numeric::number_text(k(a, a)), "a variance: finite and not negative",
                         "the kernel is indefinite or has overflowed");
    }
  }
  return k.diagonal().array();
}

/// m <- left m rightᵀ, in a layer's memory; with `diagonal_only`, the diagonal of that alone.
/// Shapes:   left (T, T), m (T, T'), right (T', T')
inline void sandwich(const Matrix<>& left, View<double> m, const Matrix<>& right,
                     View<double> product, bool diagonal_only) {
  product.noalias() = left * m;
  if (diagonal_only) {
    const Index n = (std::min)(m.rows(), m.cols());
    m.diagonal() = product.topRows(n).cwiseProduct(right.topRows(n)).rowwise().sum();
  } else {
    m.noalias() = product * right.transpose();
  }
}

inline void input_product(const Matrix<>& left, const Matrix<>& right, PairKernel& pair) {
  if (left.cols() != right.cols()) {
    throw InvalidInput("input features",
                       std::to_string(left.cols()) + " and " + std::to_string(right.cols()),
                       "as many in every input");
  }
  auto k = pair.nngp.shape(left.rows(), right.rows());
  k.noalias() = (1 / static_cast<double>(left.cols()) * left) * right.transpose();
  pair.ntk.shape(left.rows(), right.rows()).setZero();
}

}  // namespace detail

/// The kernel of raw inputs.
/// Equation: nngp = x x'ᵀ / n₀, ntk = 0
/// Shapes:   left (T, n₀), right (T', n₀) -> pair (T, T')
/// Throws:   InvalidInput for inputs without a token, without or with different features, or that
///           are not finite.
inline void input_kernel(const Matrix<>& left, const Matrix<>& right, PairKernel& pair) {
  if (left.size() == 0 || right.size() == 0) {
    throw InvalidInput("input", "empty", "at least one token with at least one feature");
  }
  detail::require_finite(left, "input");
  detail::require_finite(right, "input");
  detail::input_product(left, right, pair);
}

}  // namespace scalewise::kernels
