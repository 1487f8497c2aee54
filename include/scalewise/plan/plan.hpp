// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor_name.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/policy/parameter.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/row.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise {

/// A number of a plan, and the scaling that it comes from.
/// Units:    the kind's; scaling has those of value
template <Kind kind>
struct Number {
  double value = 0;
  Scaling scaling = 0;

  /// As the papers print it: "1/(n√n)".
  std::string formula() const { return to_text(scaling); }
  std::string latex() const { return to_latex(scaling); }

  friend bool operator==(const Number&, const Number&) = default;
};

/// Standard deviation of a planned variance.
/// Units:    a standard deviation, from a variance
inline double std_dev(const Number<Kind::variance>& variance) {
  return numeric::root(variance.value, 2);
}

namespace plan {

/// A symbol that formulas use, with its value.
struct SymbolValue {
  std::string text;
  std::string latex;
  std::string meaning;
  double value = 0;

  friend bool operator==(const SymbolValue&, const SymbolValue&) = default;
};

}  // namespace plan

namespace detail {

/// The symbol of a factor, with its value.
inline plan::SymbolValue symbol_value(const scaling::Factor& factor,
                                      const architecture::Values& at) {
  const Symbol& symbol = *factor.symbol;
  if (!factor.ratio) return {symbol.text, symbol.latex, symbol.meaning, at.at(symbol)};
  return {symbol.ratio_text, symbol.ratio_latex, std::string(symbol.meaning) + ", target over base",
          at.ratio(symbol)};
}

/// Adds a symbol to a list, unless the list has one of its text.
template <class Symbols>
void list_once(Symbols& symbols, plan::SymbolValue symbol) {
  for (const plan::SymbolValue& listed : symbols) {
    if (listed.text == symbol.text) return;
  }
  symbols.push_back(std::move(symbol));
}

}  // namespace detail

/// The planned numbers of one tensor.
/// Units:    init_variance is a variance, of the entries, or a factor on the base model's variance
///           when the plan's reference is Reference::base; learning_rate, weight_decay and epsilon
///           are factors on the global ones; epsilon is placed after the square root.
struct Entry {
  std::string name;
  Group group = Group::query;
  Stack stack = Stack::none;
  int layer = -1;  // from 0; -1 outside the blocks
  long rows = 1;
  long columns = 1;
  double fan_in = 1;
  double fan_out = 1;

  Optimizer optimizer = adamw;
  Distribution distribution = Distribution::normal;
  Number<Kind::variance> init_variance;
  Number<Kind::mean> init_mean;
  Number<Kind::multiplier> multiplier;
  Number<Kind::rate> learning_rate;
  Number<Kind::decay> weight_decay;
  Number<Kind::epsilon> epsilon;
  std::string source;
  std::vector<plan::SymbolValue> where;  // symbols whose value is this entry's own: l, r, (fi+fo)

  /// How many numbers the tensor has.
  /// Throws:   InvalidInput for sizes that are not positive, and for 2^63 numbers or more.
  std::int64_t size() const {
    if (rows < 1 || columns < 1 || rows > (std::numeric_limits<std::int64_t>::max)() / columns) {
      throw InvalidInput(name, std::to_string(rows) + " x " + std::to_string(columns),
                         "positive sizes whose product is below 2^63");
    }
    return std::int64_t{rows} * columns;
  }

  friend bool operator==(const Entry&, const Entry&) = default;
};

namespace plan {

/// Calls visit(name, number) for every number of an entry, in the order of for_each_cell().
template <class AnyEntry, class Visitor>
constexpr void for_each_number(AnyEntry& entry, Visitor&& visit) {
  visit("init_variance", entry.init_variance);
  visit("init_mean", entry.init_mean);
  visit("multiplier", entry.multiplier);
  visit("learning_rate", entry.learning_rate);
  visit("weight_decay", entry.weight_decay);
  visit("epsilon", entry.epsilon);
}

}  // namespace plan

/// Residual connection of both blocks of a layer: skip * x + branch * f(x).
struct Residual {
  Stack stack = Stack::main;
  int layer = 0;
  Number<Kind::multiplier> skip;
  Number<Kind::multiplier> branch;
  std::vector<plan::SymbolValue> where;  // symbols whose value is this layer's own

  friend bool operator==(const Residual&, const Residual&) = default;
};

namespace plan {

/// Factors of the whole model that the code base itself applies.
struct CodeNumbers {
  Number<Kind::multiplier> attention_scale;
  Number<Kind::multiplier> embedding_multiplier;
  Number<Kind::multiplier> logit_multiplier;
  Number<Kind::multiplier> branch;

  friend bool operator==(const CodeNumbers&, const CodeNumbers&) = default;
};

}  // namespace plan

/// The planned numbers of the model as a whole.
/// Equation: x = embedding_multiplier * E[token] (or patches * E) plus the other embeddings, each
///           times its entry's multiplier; scores = attention_scale * q.k;
///           logits = logit_multiplier * W h, W the head or, when tied, the token embedding
/// The two multipliers at the ends are the total: they contain those of the embedding's and the
/// head's entries, which are not to be applied once more; of a listed model they do not, as nothing says
/// which entries those are. `code` says which part of the numbers a code
/// base multiplies by itself; without it, nothing is known of the code.
struct Model {
  Number<Kind::multiplier> attention_scale;
  Number<Kind::multiplier> embedding_multiplier;
  Number<Kind::multiplier> logit_multiplier;
  std::vector<Residual> residuals;
  std::string source;
  std::optional<plan::CodeNumbers> code = {};

  friend bool operator==(const Model&, const Model&) = default;
};

/// Every tensor's initial variance, multiplier, rate, decay and epsilon under one rule: a value. io/plan_json.hpp writes
/// and reads it, nn/transformer.hpp and nn/optimizer.hpp train by it, and check/scales.hpp predicts from it.
struct Plan {
  std::string rule;
  std::string title;
  std::string authors;
  std::string year;
  std::string paper;  // arXiv number or venue
  std::string where;  // tables and sections of the paper
  Reference reference = Reference::absolute;
  std::string start = {};  // the rule that initializes the base, if with_start() put it in
  Optimizer optimizer = adamw;
  DecayForm decay = DecayForm::coupled;
  std::vector<Parameter> parameters;
  std::vector<Parameter> constants = {};  // tuned on the base; the numbers contain them
  Shape shape;
  std::optional<Shape> base = {};
  std::vector<Extra> extras = {};  // tensors that the shape does not have

  Model model = {};
  std::vector<Entry> entries = {};
  std::vector<plan::SymbolValue> symbols = {};

  /// The entry of a tensor: that of the plan, or a copy where the plan is a temporary.
  /// Throws:   InvalidInput for a name that is not in the plan.
  const Entry& at(std::string_view name) const& {
    for (const Entry& entry : entries) {
      if (entry.name == name) return entry;
    }
    throw InvalidInput("tensor", std::string(name), "the name of an entry of the plan");
  }
  Entry at(std::string_view name) && { return std::as_const(*this).at(name); }

  /// The entries of a group, in order.
  std::vector<const Entry*> of(Group group) const& {
    std::vector<const Entry*> found;
    for (const Entry& entry : entries) {
      if (entry.group == group) found.push_back(&entry);
    }
    return found;
  }
  std::vector<const Entry*> of(Group group) && = delete;  // they would point into a temporary

  /// The number of parameters of the whole model.
  /// Throws:   InvalidInput when there are 2^63 parameters or more, and as Entry::size().
  std::int64_t parameter_count() const {
    std::int64_t count = 0;
    for (const Entry& entry : entries) {
      if (count > (std::numeric_limits<std::int64_t>::max)() - entry.size()) {
        throw InvalidInput("parameter count", "more than 2^63", "a model that can be counted");
      }
      count += entry.size();
    }
    return count;
  }

  friend bool operator==(const Plan&, const Plan&) = default;
};

namespace detail {

/// The stack whose output the head reads.
inline Stack last_stack(const Shape& shape) {
  return shape.encoder_depth > 0 ? Stack::decoder : Stack::main;
}

/// The sizes of a plan's target and base, as a stack has them.
inline architecture::Values sizes_of(const Plan& plan, Stack stack) {
  return plan.base ? architecture::Values(plan.shape, *plan.base, stack)
                   : architecture::Values(plan.shape, stack);
}

/// Whether a scaling grows or falls with any of some sizes of the target: L/m_L, the base's depth, does not.
inline bool depends_on(const Scaling& scaling, std::initializer_list<const Symbol*> sizes) {
  for (const Symbol* size : sizes) {
    if (!scaling.exponent_of(*size).is_zero()) return true;
  }
  return false;
}

inline bool depends_on_depth(const Scaling& scaling) {
  using namespace symbols;
  return depends_on(scaling, {&depth, &encoder_depth, &decoder_depth});
}

}  // namespace detail

namespace plan {

/// Whether the optimizer of any tensor adds an epsilon.
inline bool uses_epsilon(const Plan& plan) {
  for (const Entry& entry : plan.entries) {
    if (entry.optimizer.has_epsilon) return true;
  }
  return false;
}

/// Whether a tensor is one of the plan's extras, which the shape does not have.
inline bool is_extra(const Plan& plan, const Entry& entry) {
  return std::any_of(plan.extras.begin(), plan.extras.end(), [&](const Extra& extra) {
    return to_string(architecture::TensorName{Stack::none, entry.layer, extra.name}) == entry.name;
  });
}

/// Whether a tensor is at an end of the model, whose multipliers contain its own: the embedding of tokens or patches, or the
/// head.
inline bool is_at_end(const Plan& plan, const Entry& entry) {
  const bool end = entry.group == Group::token_embedding || entry.group == Group::patch_embedding ||
                   entry.group == Group::head;
  return end && !is_extra(plan, entry);
}

}  // namespace plan

namespace detail {

/// The name of an entry as a value; a tensor of the user's own has the name that was given for all
/// layers as its part.
inline architecture::TensorName name_of(const Plan& plan, const Entry& entry) {
  architecture::TensorName name = architecture::tensor_name(entry.name);
  if (name.layer == entry.layer) return name;
  for (const Extra& extra : plan.extras) {
    name = {Stack::none, entry.layer, extra.name};
    if (to_string(name) == entry.name) return name;
  }
  return {Stack::none, -1, entry.name};
}

/// The name that a tensor of a layer has in the first.
inline std::string name_in_first_layer(const Plan& plan, const Entry& entry) {
  architecture::TensorName name = name_of(plan, entry);
  name.layer = (std::min)(name.layer, 0);
  return to_string(name);
}

}  // namespace detail

namespace plan {

/// Whether a constant is on weight decay, which may be 0 to exempt tensors.
constexpr bool is_decay(std::string_view constant) {
  return constant == "decay" || constant.ends_with(".decay");
}

/// The entries of the shape's tensors; those of extras follow them.
template <class AnyPlan>
auto entries_of_shape(AnyPlan& plan) {
  std::size_t size = plan.entries.size();
  while (size > 0 && is_extra(plan, plan.entries[size - 1])) --size;
  return std::span(plan.entries).first(size);
}

/// Refuses a plan with extra tensors.
/// Throws:   InvalidInput, with `why` as its hint.
inline void require_no_extras(const Plan& plan, const char* why) {
  if (plan.extras.empty()) return;
  throw InvalidInput("extra", messages::printable(plan.extras.front().name),
                     "no tensor of your own", why);
}

}  // namespace plan

}  // namespace scalewise
