// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/propagation/activation.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/linear.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"

namespace scalewise::propagation {

/// An MLP: what its moments depend on.
/// Units:    up, gate and down are variances of single weights.
struct Mlp {
  double width = 0;   // d
  double hidden = 0;  // d_ff
  double up = 0;
  double down = 0;
  Activation activation = Activation::relu;
  double dropout = 0;               // p, after the last matrix
  std::optional<double> gate = {};  // of a third matrix, to which the activation is applied instead
};

namespace detail {

/// A hidden feature of an input of variance s, before the activation.
inline policy::Preactivation hidden(const Mlp& m, double s) {
  return {m.activation, m.width * m.gate.value_or(m.up) * s};
}

/// E h(x) h(y) of the hidden features of two inputs of covariance c.
inline double hidden_product(const Mlp& m, const policy::Preactivation& x,
                             const policy::Preactivation& y, double c, Reading reading) {
  const double in = m.width * m.gate.value_or(m.up);
  const double other = m.gate ? m.width * m.up * c : 1;
  if (m.activation != Activation::relu) return other * policy::activation_product(x, y, in * c);
  const double v = x.variance, w = y.variance;
  const double deviations = v == w ? v : std::sqrt(v) * std::sqrt(w);
  if (deviations == 0) return 0;
  return other * deviations * relu_product(in * c / deviations, reading) / 2;
}

/// The gradient at an entry of the input, over that of hidden features and the weight: slopes of
/// the activation and, with a gate, times what that is multiplied with; and the same the other way.
inline double hidden_slope_product(const Mlp& m, const policy::Preactivation& x,
                                   const policy::Preactivation& y, double c) {
  const double in = m.width * m.gate.value_or(m.up);
  const double slopes = policy::activation_slope_product(x, y, in * c);
  if (!m.gate) return m.up * slopes;
  return m.up * (in * c * slopes + policy::activation_product(x, y, in * c));
}

}  // namespace detail

/// An MLP block: linear, activation, linear, dropout; no norm and no residual connection.
/// Equation: relu: var = d d_ff s1 s2 s/2 /(1-p), cov = d d_ff s1 s2 (s/2) F(r);
///           others: var = d_ff s2 M(1)/(1-p), cov = d_ff s2 M(r), M at the variance d s1 s;
///           gated: M(1) d s_up s and M(r) d s_up r s in their place, M at d s_gate s
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), B.2, Tables 15 to 20 (d_ff = 4d); paper_simple:
///           Table 2, with its polynomial for F. SiLU and gates are derived.
/// Accuracy: exact for normal hidden units, 1/d otherwise.
/// Requires: x of mean zero.
/// Differs:  Table 18 prints d where d² is meant.
inline SignalMoments mlp_block(const SignalMoments& x, const Mlp& m,
                               Reading reading = Reading::corrected) {
  const policy::Preactivation h = detail::hidden(m, x.variance);
  const SignalMoments second{.variance = detail::hidden_product(m, h, h, x.variance, reading),
                             .covariance = detail::hidden_product(m, h, h, x.covariance, reading)};
  return dropout(linear(second, m.hidden, m.down), m.dropout);
}

/// The gradient that an MLP block hands to its input x.
/// Equation: relu: var = d d_ff s1 s2 sg/2 /(1-p), cov = d d_ff s1 s2 H(r) cg/2;
///           others: N(1) and N(r) in place of 1/2 and H(r)/2;
///           gated: d s_gate s N(1) + M(1) and d s_gate r s N(r) + M(r), with s1 = s_up
/// Source:   as mlp_block.
/// Accuracy: exact for normal hidden units, 1/d otherwise.
inline SignalMoments mlp_block_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                        const Mlp& m) {
  const policy::Preactivation h = detail::hidden(m, x.variance);
  const SignalMoments g = linear_gradient(dropout_gradient(gradient, m.dropout), m.width, m.down);
  return {
      .variance = m.hidden * g.variance * detail::hidden_slope_product(m, h, h, x.variance),
      .covariance = m.hidden * g.covariance * detail::hidden_slope_product(m, h, h, x.covariance)};
}

}  // namespace scalewise::propagation
