// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

/// The quantity that a scaling or a number measures. Different kinds do not convert into each
/// other, so a variance cannot be passed where a standard deviation or a rate is expected.
enum class Kind { variance, standard_deviation, mean, multiplier, rate, decay, epsilon };

/// A scaling with its kind: one cell of a row.
template <Kind kind>
struct Cell {
  Scaling scaling;

  constexpr Cell(const Scaling& s) : scaling(s) {}
  constexpr Cell(double number) : scaling(number) {}

  friend constexpr bool operator==(const Cell&, const Cell&) = default;
};

/// The variance of a tensor's initial values.
using Variance = Cell<Kind::variance>;
/// The standard deviation of a tensor's initial values.
using StandardDeviation = Cell<Kind::standard_deviation>;
/// The mean of a tensor's initial values.
using Mean = Cell<Kind::mean>;
/// A factor on what a tensor computes in the forward pass.
using Multiplier = Cell<Kind::multiplier>;
/// A factor on the global learning rate.
using Rate = Cell<Kind::rate>;
/// A factor on the global weight decay.
using Decay = Cell<Kind::decay>;
/// A factor on the optimizer's global epsilon.
using Epsilon = Cell<Kind::epsilon>;

/// The only way from a variance to a standard deviation.
constexpr StandardDeviation std_dev(const Variance& variance) { return sqrt(variance.scaling); }

}  // namespace scalewise
