// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "scalewise/messages/words.hpp"
#include "scalewise/policy/cell.hpp"
#include "scalewise/policy/rates.hpp"

namespace scalewise {

/// How weight decay enters one step of the optimizer.
enum class DecayForm {
  coupled,      // W -= (global rate * row's rate) * decay * W: PyTorch's AdamW
  independent,  // W -= schedule * decay * W: as some papers write it
  l2,           // decay * W is added to the gradient before Adam's normalization
                // where decay = global decay * row's decay
};

namespace policy {

inline constexpr messages::Spelling<DecayForm, 3> decay_words{
    {{DecayForm::coupled, "coupled"},
     {DecayForm::independent, "independent"},
     {DecayForm::l2, "l2"}}};

}  // namespace policy

/// From which distribution a tensor starts. The rule's variance is that of its entries; of a
/// truncated normal it is the parent's, which the cut at two standard deviations makes 0.774 times
/// as large.
enum class Distribution {
  normal,
  truncated_normal,
  uniform,
  constant,  // every entry is the mean
  own,       // the model's own initial values, which the rule leaves as they are
};

namespace policy {

inline constexpr messages::Spelling<Distribution, 5> distribution_words{
    {{Distribution::normal, "normal"},
     {Distribution::truncated_normal, "truncated_normal"},
     {Distribution::uniform, "uniform"},
     {Distribution::constant, "constant"},
     {Distribution::own, "own"}}};

}  // namespace policy

/// One row of a rule's table: all that it says about one group.
/// Units:    init_variance is a variance; rates are factors on the global rate; weight_decay is a
///           factor on the global decay in the stated form; epsilon is a factor on Adam's epsilon,
///           placed after the square root.
struct Row {
  Variance init_variance = 0;
  Mean init_mean = 0;
  Multiplier multiplier = 1;
  Rates rates = 1;
  Decay weight_decay = 1;
  DecayForm decay_form = DecayForm::coupled;
  Epsilon epsilon = 1;
  Distribution distribution = Distribution::normal;
  std::string_view source = {};  // row, equation or table; "derived" where the paper is silent
  bool stated = true;            // false: the rule says nothing on this group

  /// Throws: InvalidInput for an optimizer that the row does not state.
  constexpr const Rate& rate(const Optimizer& optimizer) const { return rates.of(optimizer); }
};

/// The row of a group that a rule says nothing on: a model with such a tensor has no plan.
constexpr Row not_stated() { return {.stated = false}; }

namespace policy {

/// Calls visit(cell) for every number that a row gives a tensor, in the order of an entry's.
template <class Visitor>
constexpr void for_each_cell(const Row& row, const Optimizer& optimizer, Visitor&& visit) {
  visit(row.init_variance);
  visit(row.init_mean);
  visit(row.multiplier);
  visit(row.rate(optimizer));
  visit(row.weight_decay);
  visit(row.epsilon);
}

}  // namespace policy

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

namespace policy {

/// Calls visit(cell) for every number of the row of the whole model.
template <class Visitor>
constexpr void for_each_cell(const ModelRow& row, Visitor&& visit) {
  visit(row.attention_scale);
  visit(row.residual_skip);
  visit(row.residual_branch);
  visit(row.logit_multiplier);
  visit(row.tied_logit_multiplier);
}

}  // namespace policy

}  // namespace scalewise
