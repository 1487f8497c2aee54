// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/propagation/activation.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/linear.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::propagation {

/// An MLP of two matrices: what its moments depend on.
/// Units:    up and down are variances of single weights.
struct Mlp {
  double width = 0;   // d
  double hidden = 0;  // d_ff
  double up = 0;
  double down = 0;
  Activation activation = Activation::relu;
  double dropout = 0;  // p, after the second matrix
};

namespace detail {

inline void require_closed_form(Activation activation) {
  if (activation == Activation::relu || activation == Activation::gelu) return;
  throw InvalidInput("activation", std::string(word(architecture::activation_words, activation)),
                     "relu or gelu", "its moments have no closed form here");
}

/// E f(x) f(y) of hidden units of variances v and w and covariance c.
inline double hidden_product(const Mlp& m, double v, double w, double c, Reading reading) {
  require_closed_form(m.activation);
  if (m.activation == Activation::gelu) return gelu_product(v, w, c);
  const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
  return deviations * relu_product(c / deviations, reading) / 2;
}

/// E f'(x) f'(y).
inline double hidden_slope_product(const Mlp& m, double v, double w, double c) {
  require_closed_form(m.activation);
  if (m.activation == Activation::gelu) return gelu_slope_product(v, w, c);
  return relu_slope_product(c / (v == w ? v : std::sqrt(v) * std::sqrt(w))) / 2;
}

}  // namespace detail

/// An MLP block: linear, activation, linear, dropout; no norm and no residual connection.
/// Equation: relu: var = d d_ff s1 s2 s/2 /(1-p), cov = d d_ff s1 s2 (s/2) F(r);
///           gelu: var = d_ff s2 M(1)/(1-p), cov = d_ff s2 M(r), M at the variance d s1 s
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), B.2, Tables 15 to 20 (d_ff = 4d); paper_simple:
///           Table 2, with its polynomial for F.
/// Accuracy: exact for normal hidden units, 1/d otherwise.
/// Requires: x of mean zero.
/// Throws:   InvalidInput for another activation than ReLU and GELU.
/// Differs:  Table 18 prints d where d² is meant.
inline SignalMoments mlp_block(const SignalMoments& x, const Mlp& m,
                               Reading reading = Reading::corrected) {
  const SignalMoments hidden = linear(x, m.width, m.up);
  const double s = hidden.variance;
  const SignalMoments second{
      .variance = detail::hidden_product(m, s, s, s, reading),
      .covariance = detail::hidden_product(m, s, s, hidden.covariance, reading)};
  return dropout(linear(second, m.hidden, m.down), m.dropout);
}

/// The gradient that an MLP block hands to its input x.
/// Equation: relu: var = d d_ff s1 s2 sg/2 /(1-p), cov = d d_ff s1 s2 H(r) cg/2;
///           gelu: N(1) and N(r) in place of 1/2 and H(r)/2
/// Source:   as mlp_block.
/// Accuracy: exact for normal hidden units, 1/d otherwise.
inline SignalMoments mlp_block_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                        const Mlp& m) {
  const SignalMoments hidden = linear(x, m.width, m.up);
  const double s = hidden.variance;
  const double c = hidden.covariance;
  const SignalMoments g = linear_gradient(dropout_gradient(gradient, m.dropout), m.width, m.down);
  const SignalMoments before{.variance = g.variance * detail::hidden_slope_product(m, s, s, s),
                             .covariance = g.covariance * detail::hidden_slope_product(m, s, s, c)};
  return linear_gradient(before, m.hidden, m.up);
}

}  // namespace scalewise::propagation
