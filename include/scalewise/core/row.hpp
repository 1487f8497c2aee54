// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "scalewise/core/scaling.hpp"

namespace scalewise {

/// What a scaling or a number measures. Quantities of different kinds do not convert into each
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

using Variance = Cell<Kind::variance>;
using StandardDeviation = Cell<Kind::standard_deviation>;
using Mean = Cell<Kind::mean>;
using Multiplier = Cell<Kind::multiplier>;
using Rate = Cell<Kind::rate>;
using Decay = Cell<Kind::decay>;
using Epsilon = Cell<Kind::epsilon>;

/// The only way from a variance to a standard deviation.
constexpr StandardDeviation std_dev(const Variance& variance) { return sqrt(variance.scaling); }

/// How weight decay enters one step of the optimizer.
enum class DecayForm {
  coupled,      // W -= rate * factor * decay * W: PyTorch's AdamW
  independent,  // W -= schedule * decay * W: as the papers write it
  l2,           // decay * W is added to the gradient before Adam's normalization
};

enum class Optimizer { sgd, adamw };

/// From which distribution a tensor starts. The rule's variance is that of its entries; of a
/// truncated normal it is the parent's, which the cut at two standard deviations makes 0.774 times
/// as large.
enum class Distribution {
  normal,
  truncated_normal,
  uniform,
  constant,  // every entry is the mean
};

/// One row of a rule's table: all that it says about one group.
/// Units:    init_variance is a variance; rates are factors on the global rate; weight_decay is a
///           factor on the global decay in the stated form; epsilon is a factor on Adam's epsilon,
///           placed after the square root.
struct Row {
  Variance init_variance = 0;
  Mean init_mean = 0;
  Multiplier multiplier = 1;
  Rate sgd_rate = 1;
  Rate adamw_rate = 1;
  Decay weight_decay = 1;
  DecayForm decay_form = DecayForm::coupled;
  Epsilon epsilon = 1;
  Distribution distribution = Distribution::normal;
  std::string_view source = {};  // row, equation or table; "derived" where the paper is silent

  constexpr const Rate& rate(Optimizer optimizer) const {
    return optimizer == Optimizer::sgd ? sgd_rate : adamw_rate;
  }
};

/// The row of the whole model.
/// Equation: residual: skip * x + branch * f(x); scores: attention_scale * q.k;
///           logits: logit_multiplier * W h, and once more tied_logit_multiplier when W is the
///           token embedding.
struct ModelRow {
  Multiplier attention_scale = 1 / sqrt(symbols::C);
  Multiplier residual_skip = 1;
  Multiplier residual_branch = 1;
  Multiplier logit_multiplier = 1;
  Multiplier tied_logit_multiplier = 1;
  std::string_view source = {};
};

}  // namespace scalewise
