// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scalewise/dense/buffer.hpp"
#include "scalewise/nn/dropout.hpp"
#include "scalewise/nn/observer.hpp"
#include "scalewise/nn/rotary.hpp"

namespace scalewise::nn {

/// State of one pass through a model: the observer, dropout, and the memory for results that no later
/// layer reads, which all layers share.
template <class Scalar>
struct Pass {
  Observer<Scalar> observer;  // may be empty
  double dropout = 0;         // 0 in an evaluation
  std::uint64_t dropout_seed = 0;
  std::uint64_t draw = 0;

  RotaryTable<Scalar> rotary;
  dense::Buffer<Scalar> normed, output, doutput, dinput;  // of a residual branch
  dense::Buffer<Scalar> kept;                             // probabilities after dropout
  dense::Buffer<Scalar> hidden, active;  // of an MLP; hidden also of attention, backward

  /// Hands values to the observer, if there is one.
  /// Shapes:   values of any
  void show(const std::string& owner, std::string_view name, const ConstView<Scalar>& values,
            Observed quantity = Observed::value) const {
    if (observer) observer(owner + std::string(name), quantity, values);
  }
  /// The same of a gradient.
  /// Shapes:   values of any
  void show_gradient(const std::string& owner, std::string_view name,
                     const ConstView<Scalar>& values) const {
    show(owner, name, values, Observed::gradient);
  }

  Dropout dropout_of(const std::string& owner, std::string_view name) const {
    if (dropout == 0) return {};
    return {dropout, dropout_seed, draw, owner, name};
  }
};

}  // namespace scalewise::nn
