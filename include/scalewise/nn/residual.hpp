// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/nn/blocks.hpp"

namespace scalewise::nn {

/// A residual connection around a block f, in one of three forms.
/// Equation: pre:  y = skip x + branch g * f(norm x)
///           post: y = norm(skip x + branch g * f(x))
///           normalized: y = unit(x + a * (unit(f(x)) - x)), a the step times its multiplier
/// Source:   normalized: Loshchilov et al. 2025 (arXiv:2410.01131v2), eqs. (10), (11).
/// Shapes:   x, y (N, C); g (1, C), (1, 1) or absent; a (1, C)
template <class Scalar>
struct ResidualBlock {
  Placement placement = Placement::pre;
  Scalar skip = 1;
  Scalar branch = 1;
  NormLayer<Scalar> norm;  // absent gains and biases make a plain norm
  bool has_norm = true;
  Weight<Scalar> gain;
  Weight<Scalar> step;

  Matrix<Scalar> input;   // (N, C) of f
  Matrix<Scalar> output;  // (N, C) of f; the normalized form keeps it at unit length
  Matrix<Scalar> x;       // (N, C), kept by the normalized form
  Matrix<Scalar> sum;     // (N, C) before the norm of post, after that of normalized
  Matrix<Scalar> inverse_output, inverse_sum;
  Matrix<Scalar> dsum, doutput, dinput;

  bool normalized() const { return step.present(); }

  /// inner(input, output) computes f.
  template <class Inner>
  void forward(const ConstView<Scalar>& x_in, Inner&& inner, View<Scalar> y) {
    input.resize(x_in.rows(), x_in.cols());
    output.resize(x_in.rows(), x_in.cols());
    if (placement == Placement::pre && has_norm && !normalized()) {
      norm.forward(x_in, view(input));
    } else {
      input = x_in;
    }
    inner(read(input), view(output));
    if (normalized()) return forward_normalized(y);
    if (placement == Placement::pre || !has_norm) {
      y = skip * x_in + branch * scaled(output);
      return;
    }
    sum = skip * x_in + branch * scaled(output);
    norm.forward(read(sum), y);
  }

  /// inner_backward(doutput, input, dinput) overwrites dinput and accumulates f's own gradients.
  /// Writes: overwrites dx, which may not be dy.
  template <class Inner>
  void backward(const ConstView<Scalar>& dy, Inner&& inner_backward, View<Scalar> dx) {
    doutput.resize(dy.rows(), dy.cols());
    dinput.resize(dy.rows(), dy.cols());
    dsum.resize(dy.rows(), dy.cols());
    if (normalized()) {
      backward_normalized(dy, dx);
    } else {
      if (placement == Placement::post && has_norm) {
        norm.backward(dy, view(dsum));
      } else {
        dsum = dy;
      }
      backward_gain();
      dx = skip * dsum;
    }
    inner_backward(read(doutput), read(input), view(dinput));
    if (placement == Placement::pre && has_norm && !normalized()) {
      norm.backward(read(dinput), view(dsum));
      dx += dsum;
    } else {
      dx += dinput;
    }
  }

 private:
  /// The branch with its learned gain: one per channel, one, or none.
  Matrix<Scalar> scaled(const Matrix<Scalar>& f) const {
    if (!gain.present()) return f;
    if (gain.value().size() == 1) return f * (gain.multiplier * gain.value()(0, 0));
    return (f.array().rowwise() * (gain.multiplier * gain.value().row(0)).array()).matrix();
  }

  /// doutput and the gain's gradient from dsum.
  void backward_gain() {
    doutput = branch * scaled(dsum);
    if (!gain.present()) return;
    const Scalar factor = branch * gain.multiplier;
    if (gain.value().size() == 1) {
      gain.gradient()(0, 0) += factor * dsum.cwiseProduct(output).sum();
    } else {
      gain.gradient() += factor * dsum.cwiseProduct(output).colwise().sum();
    }
  }

  void forward_normalized(View<Scalar> y) {
    x = input;
    inverse_output.resize(x.rows(), 1);
    inverse_sum.resize(x.rows(), 1);
    unit_forward(read(output), view(output), view(inverse_output));
    sum = x.array() +
          (output - x).array().rowwise() * (step.multiplier * step.value().row(0)).array();
    unit_forward(read(sum), y, view(inverse_sum));
    sum = y;
  }

  void backward_normalized(const ConstView<Scalar>& dy, View<Scalar> dx) {
    unit_backward(dy, read(sum), read(inverse_sum), view(dsum));
    step.gradient() += step.multiplier * dsum.cwiseProduct(output - x).colwise().sum();
    doutput = (dsum.array().rowwise() * (step.multiplier * step.value().row(0)).array()).matrix();
    dx = dsum - doutput;
    unit_backward(read(doutput), read(output), read(inverse_output), view(doutput));
  }
};

}  // namespace scalewise::nn
