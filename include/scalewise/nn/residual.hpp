// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/nn/blocks.hpp"

namespace scalewise::nn {

/// A residual connection around a block f, in one of three forms.
/// Equation: pre:  y = skip x + branch g * f(norm x)
///           post: y = norm(skip x + branch g * f(x))
///           normalized: y = unit(x + |a| * (unit(f(x)) - x)), a the step times its multiplier
/// Source:   normalized: Loshchilov et al. 2025 (arXiv:2410.01131v2), eqs. (10), (11); steps are
///           nonnegative: Shigida, Hanin, Gromov 2026 (arXiv:2604.27077v2), section 2, by the
///           absolute value as in nGPT's released code.
/// Shapes:   x, y (N, C); g (1, C), (1, 1) or absent; a (1, C)
/// With a branch norm, f is that norm of the block.
/// The gradient of |a| is sign(a), and 0 at a = 0, as in PyTorch.
/// Dropout falls on f(x), before the gain. Observers see `input` and `output` of f, the output
/// after dropout, and the `stream` y.
template <class Scalar>
struct ResidualBlock {
  std::string name;  // what observers and dropout know it by, ending in a dot
  NormPlacement placement = NormPlacement::pre;
  Scalar skip = 1;
  Scalar branch = 1;
  NormLayer<Scalar> norm;  // absent gains and biases make a plain norm
  bool has_norm = true;
  NormLayer<Scalar> branch_norm;
  bool has_branch_norm = false;
  Weight<Scalar> gain;
  Weight<Scalar> step;

  dense::Buffer<Scalar>
      output;  // (N, C) of f where the backward pass reads it; of unit length if normalized
  dense::Buffer<Scalar> raw;  // (N, C) what the branch norm reads
  dense::Buffer<Scalar> sum;  // (N, C) before the norm of post, after that of normalized
  dense::Buffer<Scalar> inverse_output, inverse_sum;
  dense::Buffer<Scalar> size;  // (1, C) of the steps, |a|

  bool normalized() const { return step.present(); }

  /// inner(input, output) computes f. x has to stay as it is until the backward pass is over.
  template <class Inner>
  void forward(Pass<Scalar>& pass, const ConstView<Scalar>& x, const Inner& inner, View<Scalar> y) {
    if (before()) norm.forward(x, pass.normed.shape(x.rows(), x.cols()));
    dense::Buffer<Scalar>& f = normalized() || gain.present() ? output : pass.output;
    pass.show(name, "input", input(pass, x));
    View<Scalar> out = f.shape(x.rows(), x.cols());
    inner(input(pass, x), has_branch_norm ? raw.shape(x.rows(), x.cols()) : out);
    if (has_branch_norm) branch_norm.forward(raw.read(), out);
    pass.dropout_of(name, "output").apply(out);
    pass.show(name, "output", f.read());
    if (normalized()) {
      forward_normalized(x, y);
    } else if (after()) {
      add(x, f.read(), sum.shape(x.rows(), x.cols()));
      norm.forward(sum.read(), y);
    } else {
      add(x, f.read(), y);
    }
  }

  /// inner_backward(doutput, input, dinput) overwrites dinput and f's own gradients.
  /// Shapes: dy, x as in forward -> dx
  /// Writes: overwrites dx, which may not be dy. doutput may be dy or dx.
  template <class Inner>
  void backward(Pass<Scalar>& pass, const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                const Inner& inner_backward, View<Scalar> dx) {
    pass.show_gradient(name, "stream", dy);
    View<Scalar> dinput = pass.dinput.shape(dy.rows(), dy.cols());
    // Of post-norm and normalized: the gradient that bypasses the block, before the block's own part.
    const ConstView<Scalar> dstream = dense::read(dx);
    if (after()) norm.backward(dy, sum.read(), dx);
    const ConstView<Scalar> dsum = after() ? dstream : dy;
    const Dropout dropout = pass.dropout_of(name, "output");
    const bool plain = !normalized() && !gain.present() && branch == 1 && !dropout.active();
    if (normalized()) {
      backward_normalized(dy, x, pass.doutput.shape(dy.rows(), dy.cols()), dx);
    } else if (!plain) {
      backward_branch(dsum, pass.doutput.shape(dy.rows(), dy.cols()));
    }
    const ConstView<Scalar> doutput = plain ? dsum : pass.doutput.read();
    pass.show_gradient(name, "output", doutput);
    if (!plain) dropout.apply(pass.doutput.view());
    if (before()) norm.again(x, pass.normed.shape(x.rows(), x.cols()));
    inner_backward(before_branch_norm(pass, doutput), input(pass, x), dinput);
    pass.show_gradient(name, "input", pass.dinput.read());
    if (before()) {
      norm.backward(pass.dinput.read(), x, dx, &dy, skip);
    } else if (normalized()) {
      add_rows(Scalar(1), dstream, Scalar(1), pass.dinput.read(), dx);
    } else {
      add_rows(skip, dsum, Scalar(1), pass.dinput.read(), dx);
    }
  }

 private:
  bool before() const { return placement == NormPlacement::pre && has_norm && !normalized(); }
  bool after() const { return placement == NormPlacement::post && has_norm && !normalized(); }

  /// The input of f.
  ConstView<Scalar> input(const Pass<Scalar>& pass, const ConstView<Scalar>& x) const {
    return before() ? pass.normed.read() : x;
  }

  /// The gradient of the block's own output, from that of f.
  ConstView<Scalar> before_branch_norm(Pass<Scalar>& pass, const ConstView<Scalar>& doutput) {
    if (!has_branch_norm) return doutput;
    branch_norm.backward(doutput, raw.read(), pass.doutput.shape(doutput.rows(), doutput.cols()));
    return pass.doutput.read();
  }

  /// y = a x + b f
  static void add_rows(Scalar a, const ConstView<Scalar>& x, Scalar b, const ConstView<Scalar>& f,
                       View<Scalar> y) {
    numeric::parallel_tiles(x.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
      y.middleRows(begin, rows) = a * x.middleRows(begin, rows) + b * f.middleRows(begin, rows);
    });
  }

  /// y = skip x + branch g * f
  void add(const ConstView<Scalar>& x, const ConstView<Scalar>& f, View<Scalar> y) const {
    if (!gain.present()) return add_rows(skip, x, branch, f, y);
    const Scalar factor = branch * gain.multiplier;
    if (gain.value().size() == 1) return add_rows(skip, x, factor * gain.value()(0, 0), f, y);
    numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
      y.row(i).array() =
          skip * x.row(i).array() + f.row(i).array() * (factor * gain.value().row(0).array());
    });
  }

  /// doutput = branch g * dsum, and the gain's gradient.
  void backward_branch(const ConstView<Scalar>& dsum, View<Scalar> doutput) {
    const Scalar factor = branch * gain.multiplier;
    if (gain.present() && gain.value().size() > 1) {
      gain.gradient().setZero();
      sum_products(factor, dsum, output.read(), gain.gradient());
      return scale_columns(factor, dsum, gain.value(), doutput);
    }
    Scalar scale = branch;
    if (gain.present()) {
      gain.gradient()(0, 0) = factor * dsum.cwiseProduct(output.read()).sum();
      scale = factor * gain.value()(0, 0);
    }
    numeric::parallel_tiles(dsum.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
      doutput.middleRows(begin, rows) = scale * dsum.middleRows(begin, rows);
    });
  }

  void forward_normalized(const ConstView<Scalar>& x, View<Scalar> y) {
    unit_forward(output.read(), output.view(), inverse_output.shape(x.rows(), 1));
    const ConstView<Scalar> f = output.read();
    View<Scalar> s = sum.shape(x.rows(), x.cols());
    View<Scalar> a = size.shape(1, x.cols());
    a = (step.multiplier * step.value()).cwiseAbs();
    numeric::parallel_rows(x.rows(), [&](Eigen::Index i) {
      s.row(i).array() = x.row(i).array() + (f.row(i) - x.row(i)).array() * a.row(0).array();
    });
    unit_forward(sum.read(), s, inverse_sum.shape(x.rows(), 1));
    y = s;
  }

  /// dx = the gradient along the stream; doutput that of f.
  void backward_normalized(const ConstView<Scalar>& dy, const ConstView<Scalar>& x,
                           View<Scalar> doutput, View<Scalar> dx) {
    unit_backward(dy, sum.read(), inverse_sum.read(), dx);
    const ConstView<Scalar> dsum = dense::read(dx);
    const ConstView<Scalar> f = output.read();
    View<Scalar> da = step.gradient();
    da.setZero();
    sum_products(step.multiplier, dsum, f, da);
    sum_products(-step.multiplier, dsum, x, da);
    da.array() *= (step.multiplier * step.value()).array().sign();
    scale_columns(Scalar(1), dsum, size.read(), doutput);
    numeric::parallel_tiles(dx.rows(), 64, [&](Eigen::Index begin, Eigen::Index rows) {
      dx.middleRows(begin, rows) -= doutput.middleRows(begin, rows);
    });
    const ConstView<Scalar> df = dense::read(doutput);
    unit_backward(df, f, inverse_output.read(), doutput);
  }
};

}  // namespace scalewise::nn
