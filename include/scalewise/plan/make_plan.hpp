// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/policy_view.hpp"

namespace scalewise::inline plan {

namespace detail {

/// Walks one shape through one rule.
class Planner {
 public:
  Planner(const PolicyView& policy, const Optimizer& optimizer, DecayForm decay,
          const Shape& target, const std::optional<Shape>& base,
          const std::vector<Extra>& extras = {})
      : policy_(policy) {
    plan_.rule = policy.id;
    plan_.title = policy.source.title;
    plan_.authors = policy.source.authors;
    plan_.year = policy.source.year;
    plan_.paper = policy.source.id;
    plan_.where = policy.source.where;
    plan_.reference = policy.reference;
    plan_.optimizer = optimizer;
    plan_.decay = decay;
    plan_.parameters = policy.parameters;
    if (target.blocks == Blocks::listed) require_by_role();
    plan_.shape = policy.adapt(resolved(target));
    if (base) plan_.base = policy.adapt(resolved(*base));
    plan_.extras = extras;
    check();
  }

  Plan make() && {
    for_each_tensor(plan_.shape, plan_.base.value_or(plan_.shape),
                    [&](const Tensor& tensor) { add(tensor); });
    add_extras();
    add_model();
    add_symbols();
    check_plan(plan_);
    return std::move(plan_);
  }

 private:
  void check() const {
    policy_.validate(plan_.shape);
    if (!policy_.states(plan_.optimizer)) {
      const std::string stated = listed(names_of(policy_.optimizers));
      throw InvalidInput("optimizer", std::string(plan_.optimizer.name), stated,
                         plan_.rule + " is published for no other");
    }
    if (!plan_.base) return;
    if (plan_.base->input != plan_.shape.input) {
      throw InvalidInput("base.input", plan_.base->input == Input::token ? "token" : "patch",
                         "the input of the target");
    }
    if ((plan_.base->encoder_depth > 0) != (plan_.shape.encoder_depth > 0)) {
      throw InvalidInput("base.encoder_depth", std::to_string(plan_.base->encoder_depth),
                         "an encoder in both shapes or in neither");
    }
  }

  /// A list of tensors says which of them are hidden matrices, but not which are queries or values.
  void require_by_role() const {
    const auto cells = [&](Group group) {
      const Row row = policy_.row(group, Context{});
      std::vector<Scaling> all;
      for_each_cell(row, optimizer_of(plan_.optimizer, group),
                    [&](const auto& cell) { all.push_back(cell.scaling); });
      if (!row.stated) all.clear();
      return all;
    };
    const std::vector<Scaling> hidden = cells(Group::hidden);
    bool alike = !hidden.empty();
    for (const GroupInfo& info : group_table) {
      alike = alike && (info.role != Role::hidden || cells(info.group) == hidden);
    }
    if (alike) return;
    throw InvalidInput(
        "rule", plan_.rule, "a rule that is stated by role, such as complete-p",
        "it tells queries, values and other hidden matrices apart; give a --preset, or a --config");
  }

  /// The sizes, and the rule's own values at a layer of a stack; layer -1 is outside all layers.
  Values values(Stack stack, int layer = -1) {
    Values result =
        plan_.base ? Values(plan_.shape, *plan_.base, stack) : Values(plan_.shape, stack);
    std::vector<OwnValues>& own = own_values_[static_cast<std::size_t>(stack)];
    if (own.empty()) {
      own = policy_.own_values(Context{plan_.shape, stack});
      require_own_texts(own);
    }
    for (const auto& [symbol, by_layer] : own) {
      if (by_layer.size() > 1 && !symbol->varies) {
        throw InvalidInput(symbol->text, "a value for each layer",
                           "one value, or a symbol that varies");
      }
      if (by_layer.size() == 1) {
        result.set(*symbol, by_layer.front());
      } else if (layer >= 0) {
        result.set(*symbol, by_layer.at(static_cast<std::size_t>(layer)));
      }
    }
    if (layer >= 0) result.set(symbols::layer, layer + 1);
    return result;
  }

  /// Refuses a rule's own symbol with the text of another, by which formulas would take one for the other.
  static void require_own_texts(const std::vector<OwnValues>& own) {
    std::vector<const Symbol*> all(known_symbols.begin(), known_symbols.end());
    for (const OwnValues& values : own) {
      const Symbol& symbol = *values.symbol;
      for (const Symbol* other : all) {
        const std::string_view text = symbol.text;
        if (other == &symbol || (text != other->text && text != other->ratio_text)) continue;
        throw InvalidInput("symbol", symbol.text, "a text that no other symbol has",
                           "it is that of " + std::string(other->meaning));
      }
      all.push_back(&symbol);
    }
  }

  template <Kind kind>
  void number(Number<kind>& planned, const Scaling& scaling, const Values& values) {
    if (scaling.is_relative() && !plan_.base) {
      throw InvalidInput("base", "none", "the shape of the model that was tuned",
                         plan_.rule + " is relative to a base, and there is no default");
    }
    for (const Factor& factor : scaling.factors()) {
      if (!factor.is_integer() && !factor.symbol->varies) list(factor);
    }
    planned = {evaluate(scaling, values), scaling};
  }

  /// Lists the symbol of a factor, once.
  void list(const Factor& factor) {
    auto place = listed_.begin();
    while (place != listed_.end() && place->before(factor)) ++place;
    if (place == listed_.end() || !place->same_symbol(factor)) listed_.insert(place, factor);
  }

  /// Of a model with two stacks, L is written N_e in the encoder and N_d elsewhere.
  Scaling in_stack(const Scaling& cell, Stack stack) const {
    if (plan_.shape.encoder_depth == 0) return cell;
    return substitute(cell, symbols::depth,
                      stack == Stack::encoder ? symbols::encoder_depth : symbols::decoder_depth);
  }

  /// Appends the symbols of a cell whose values are its own.
  template <class Symbols>
  static void list_own_symbols(const Scaling& cell, const Values& at, Symbols& where) {
    for (const Factor& factor : cell.factors()) {
      if (factor.symbol->varies) list_once(where, symbol_value(factor, at));
    }
  }

  void add(const Tensor& tensor) {
    const Context context{plan_.shape, tensor.stack};
    Row row = policy_.row(tensor.group, context);
    if (!row.stated) {
      throw InvalidInput(tensor.name,
                         "a tensor of the group " + std::string(to_string(tensor.group)),
                         "one of those that " + plan_.rule + " states");
    }
    const Optimizer optimizer = optimizer_of(plan_.optimizer, tensor.group);
    Values at = values(tensor.stack, tensor.layer);
    row.rates.set(optimizer, row.rate(optimizer).scaling / own_factor(optimizer, tensor, at));
    row.weight_decay = decay(row, optimizer);
    if (optimizer.normalization == Normalization::by_matrix) row.epsilon = 1;  // not Adam's
    auto& entry = plan_.entries.emplace_back();
    entry.name = tensor.name;
    entry.group = tensor.group;
    entry.stack = tensor.stack;
    entry.layer = tensor.layer;
    entry.rows = tensor.rows;
    entry.columns = tensor.columns;
    entry.fan_in = evaluate(tensor.fan_in, at);
    entry.fan_out = evaluate(tensor.fan_out, at);
    entry.optimizer = optimizer;
    entry.distribution = row.distribution;
    entry.source = row.source;
    at.set(symbols::fan_total, entry.fan_in + entry.fan_out);

    const auto bound = [&](const Scaling& cell) {
      const Scaling fans = substitute(substitute(cell, symbols::fan_in, tensor.fan_in),
                                      symbols::fan_out, tensor.fan_out);
      return in_stack(fans, tensor.stack);
    };
    std::array<Scaling, 6> cells;
    std::size_t next = 0;
    for_each_cell(row, entry.optimizer,
                  [&](const auto& cell) { cells.at(next++) = bound(cell.scaling); });
    next = 0;
    for_each_number(entry,
                    [&](const char*, auto& planned) { number(planned, cells.at(next++), at); });
    for (const Scaling& cell : cells) list_own_symbols(cell, at, entry.where);
  }

  /// The optimizer's own factor on its steps, over the base's where the rule is relative.
  Scaling own_factor(const Optimizer& optimizer, const Tensor& tensor, const Values& at) const {
    const bool relative = plan_.reference == Reference::base;
    const auto fan = [&](const Symbol& symbol) { return Scaling(symbol, relative); };
    switch (optimizer.own_factor) {
      case OwnFactor::one:
        return 1;
      case OwnFactor::fan_ratio:
        return sqrt(fan(symbols::fan_out) / fan(symbols::fan_in));
      case OwnFactor::original:
        return sqrt(larger_fan(tensor, at) / fan(symbols::fan_in));
      case OwnFactor::larger_fan:
        return sqrt(larger_fan(tensor, at));
      case OwnFactor::match_adamw:
        return (relative ? 1 : 0.2) * sqrt(larger_fan(tensor, at));
    }
    return 1;
  }

  /// The larger fan, over the base's where the rule is relative: a number if it is another one there.
  Scaling larger_fan(const Tensor& tensor, const Values& at) const {
    const double in = evaluate(tensor.fan_in, at), out = evaluate(tensor.fan_out, at);
    const bool relative = plan_.reference == Reference::base;
    const double base_in = relative ? in / evaluate(ratio(tensor.fan_in), at) : in;
    const double base_out = relative ? out / evaluate(ratio(tensor.fan_out), at) : out;
    if (in >= out && base_in >= base_out) return Scaling(symbols::fan_in, relative);
    if (in <= out && base_in <= base_out) return Scaling(symbols::fan_out, relative);
    return (std::max)(in, out) / (std::max)(base_in, base_out);
  }

  /// Whether a row has other numbers in each layer.
  bool varies(const Row& row, Group group) const {
    bool found = false;
    for_each_cell(row, optimizer_of(plan_.optimizer, group), [&](const auto& cell) {
      for (const Factor& factor : cell.scaling.factors()) {
        found = found || (factor.symbol->varies && factor.symbol != &symbols::fan_total);
      }
    });
    return found;
  }

  void add_extras() {
    if (plan_.extras.empty()) return;
    std::set<std::string> names;
    for (const Entry& entry : plan_.entries) names.insert(entry.name);
    for (const Tensor& tensor : extra_tensors(plan_.extras, plan_.shape)) {
      if (!names.insert(tensor.name).second) {
        throw InvalidInput("extra", printable(tensor.name), "a name that no other tensor has");
      }
      if (tensor.layer < 0 &&
          varies(policy_.row(tensor.group, Context{plan_.shape, tensor.stack}), tensor.group)) {
        throw InvalidInput("extra", printable(tensor.name), "a name with * for the layer",
                           "in " + plan_.rule + " the row of " +
                               std::string(to_string(tensor.group)) +
                               " differs from layer to layer");
      }
      require_sides(tensor);
      add(tensor);
    }
    if (plan_.base) static_cast<void>(extra_tensors(plan_.extras, *plan_.base));  // has its sizes
  }

  /// A row whose variance or rate names sizes of the model is for a matrix with the sides of its group.
  void require_sides(const Tensor& extra) {
    if (!is_matrix(extra.group)) return;
    const Row row = policy_.row(extra.group, Context{plan_.shape, extra.stack});
    const Optimizer& optimizer = optimizer_of(plan_.optimizer, extra.group);
    if (!names_a_size(row.init_variance.scaling) && !names_a_size(row.rate(optimizer).scaling))
      return;
    bool alike = false;
    Shape whole = plan_.shape;  // with the matrices that not every model has
    whole.tied_head = false;
    whole.gated_mlp = whole.learned_positions = true;
    whole.segments = 1;
    const Values at = values(extra.stack);
    const auto same = [&](const Scaling& a, const Scaling& b) {
      return evaluate(a, at) == evaluate(b, at) &&
             (!plan_.base || evaluate(ratio(a), at) == evaluate(ratio(b), at));
    };
    for_each_tensor(whole, plan_.base.value_or(plan_.shape), [&](const Tensor& own) {
      alike = alike || (own.group == extra.group && same(own.fan_in, extra.fan_in) &&
                        same(own.fan_out, extra.fan_out));
    });
    if (alike) return;
    throw InvalidInput(
        "extra", printable(extra.name),
        "the inputs and outputs of the shape's own " + std::string(to_string(extra.group)),
        plan_.rule + " states them by sizes of the model, not by a matrix's fans");
  }

  static bool names_a_size(const Scaling& cell) {
    using namespace symbols;
    return depends_on(cell, {&d_model, &d_ff, &mlp_ratio, &heads, &kv_heads, &head_dim, &vocab,
                             &context, &patch_dim, &classes});
  }

  /// The rule's decay in the form that the plan is asked for: shrink per step is the same.
  Scaling decay(const Row& row, const Optimizer& optimizer) const {
    const Scaling& stated = row.weight_decay.scaling;
    const Scaling& rate = row.rate(optimizer).scaling;
    if (stated.is_zero()) return 0;
    // Where gradients are not normalized, L2 and coupled decay are the same.
    if (plan_.decay == DecayForm::l2 && optimizer.normalization != Normalization::none) {
      if (rate != Scaling(1) || optimizer.normalization == Normalization::by_matrix) {
        throw InvalidInput(
            "decay", "l2", "coupled or independent",
            "a penalty inside Adam's gradient is normalized away and cannot follow " + plan_.rule +
                "; use AdamW");
      }
      return stated;
    }
    const bool want_coupled = plan_.decay != DecayForm::independent;
    const bool is_coupled = row.decay_form == DecayForm::coupled;
    return want_coupled == is_coupled ? stated : want_coupled ? stated / rate : stated * rate;
  }

  void add_residuals(Stack stack) {
    const Context context{plan_.shape, stack};
    const ModelRow row = policy_.model(context);
    for (int layer = 0; layer < context.depth(); ++layer) {
      const Values at = values(stack, layer);
      const Scaling skip = in_stack(row.residual_skip.scaling, stack);
      const Scaling branch = in_stack(row.residual_branch.scaling, stack);
      auto& residual = plan_.model.residuals.emplace_back();
      residual.stack = stack;
      residual.layer = layer;
      number(residual.skip, skip, at);
      number(residual.branch, branch, at);
      list_own_symbols(skip * branch, at, residual.where);
    }
  }

  void add_model() {
    const bool both = plan_.shape.encoder_depth > 0;
    if (both) add_residuals(Stack::encoder);
    add_residuals(both ? Stack::decoder : Stack::main);

    const Context context{plan_.shape, both ? Stack::decoder : Stack::main};
    const ModelRow row = policy_.model(context);
    const Values at = values(context.stack);
    const bool listed = plan_.shape.blocks == Blocks::listed;  // whose entries keep their own
    const auto row_multiplier = [&](Group group, const Scaling& fan_in, const Scaling& fan_out) {
      const Scaling cell = listed ? Scaling(1) : policy_.row(group, context).multiplier.scaling;
      return substitute(substitute(cell, symbols::fan_in, fan_in), symbols::fan_out, fan_out);
    };
    using symbols::n;
    const bool tied = *plan_.shape.tied_head;
    const bool token = plan_.shape.input == Input::token;
    const Scaling logits =
        row.logit_multiplier.scaling *
        (tied ? row.tied_logit_multiplier.scaling : row_multiplier(Group::head, n, symbols::n_out));
    const Scaling embedding =
        row_multiplier(token ? Group::token_embedding : Group::patch_embedding,
                       token ? Scaling(1) : symbols::n_patch, n);
    number(plan_.model.attention_scale,
           has_heads(plan_.shape) ? in_stack(row.attention_scale.scaling, context.stack) : 0, at);
    number(plan_.model.embedding_multiplier, embedding, at);
    number(plan_.model.logit_multiplier, logits, at);
    plan_.model.source = row.source;
  }

  void add_symbols() {
    const Values at = values(plan_.shape.encoder_depth > 0 ? Stack::decoder : Stack::main);
    for (const Factor& factor : listed_) {
      plan_.symbols.push_back(symbol_value(factor, at));
    }
  }

  const PolicyView& policy_;
  Plan plan_;
  std::array<std::vector<OwnValues>, 4> own_values_;  // by stack
  std::vector<Factor> listed_;                        // one of each symbol, in their order
};

}  // namespace detail

/// The plan of a model under a rule.
/// Shapes:   one entry per tensor of `target`, in the order stem, blocks, head, and then per tensor of
///           `extras`.
/// Requires: `base`, the shape on which rates were tuned, when the rule needs one (`needs_base`); other
///           rules ignore it. `decay` says which form of weight decay the optimizer at hand has.
/// Throws:   InvalidInput, naming the field, for a shape that cannot be, a missing base, an
///           optimizer that the rule does not state, an extra that extra_tensors() refuses or that
///           has the name of another tensor, L2 decay inside Adam under a rule that scales
///           rates, or a number that check_plan() refuses.
template <class P, const Optimizer& optimizer>
Plan make_plan(const Shape& target, const std::optional<Shape>& base = {}, const P& policy = {},
               DecayForm decay = DecayForm::coupled, const std::vector<Extra>& extras = {}) {
  if constexpr (require_policy<P>()) {
    const PolicyView view(policy);
    return detail::Planner(view, optimizer, decay, target, base, extras).make();
  }
}

}  // namespace scalewise::inline plan
