// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/plan/plan_request.hpp"
#include "scalewise/policy/by_role.hpp"
#include "scalewise/policy/formulation.hpp"
#include "scalewise/policy/rule.hpp"

namespace scalewise::detail {

/// Walks one shape through one rule: for each tensor the row of its group, with the tensor's fans and the sizes of the
/// model put in, becomes an entry; then extras, and what the model as a whole has. `rule_.policy` is the rule's struct
/// with its type erased.
class Planner {
 public:
  Planner(const Rule& rule, const PlanRequest& request)
      : rule_(rule),
        plan_{.rule = std::string(rule.id),
              .title = std::string(rule.source.title),
              .authors = std::string(rule.source.authors),
              .year = std::string(rule.source.year),
              .paper = std::string(rule.source.id),
              .where = std::string(rule.source.where),
              .reference = rule.reference,
              .optimizer = request.optimizer,
              .decay = request.decay,
              .parameters = rule.parameters,
              .shape = adapted(request.model),
              .extras = request.extras} {
    if (request.base) plan_.base = adapted(*request.base);
    require_what_fits();
  }

  Plan make() && {
    architecture::for_each_tensor(plan_.shape, plan_.base.value_or(plan_.shape),
                                  [&](const Tensor& tensor) { add(tensor); });
    add_extras();
    add_model();
    const architecture::Values at = values_at(last_stack(plan_.shape));
    for (const scaling::Factor& factor : listed_) plan_.symbols.push_back(symbol_value(factor, at));
    check_plan(plan_);
    return std::move(plan_);
  }

 private:
  /// The shape that the rule is defined on. A model that is known by its list of tensors alone needs a rule whose rows
  /// follow from roles.
  Shape adapted(const Shape& model) const {
    if (model.blocks == Blocks::listed) policy::require_by_role(rule_);
    return rule_.policy->adapt(resolved(model));
  }

  void require_what_fits() const {
    rule_.policy->validate(plan_.shape);
    if (!policy::states(rule_, plan_.optimizer)) {
      throw InvalidInput("optimizer", std::string(plan_.optimizer.name),
                         messages::listed(policy::names_of(rule_.optimizers)),
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

  Row row_of(const Tensor& of) const {
    return rule_.policy->row(of.group, {plan_.shape, of.stack, plan_.base, of.in_layers});
  }

  // ---- values of symbols -------------------------------------------------------------------------

  /// The sizes, and the values of the rule's own symbols, at a layer of a stack; layer -1 is outside all layers.
  architecture::Values values_at(Stack stack, int layer = -1) {
    architecture::Values result = sizes_of(plan_, stack);
    for (const auto& [symbol, by_layer] : own_values(stack)) {
      if (by_layer.size() == 1) {
        result.set(*symbol, by_layer.front());
      } else if (layer >= 0) {
        result.set(*symbol, by_layer.at(static_cast<std::size_t>(layer)));
      }
    }
    if (layer >= 0) result.set(symbols::layer, layer + 1);
    return result;
  }

  /// Asks the rule once for each stack, since some integrate.
  const std::vector<policy::OwnValues>& own_values(Stack stack) {
    std::vector<policy::OwnValues>& own = own_values_[static_cast<std::size_t>(stack)];
    if (own.empty()) {
      own = rule_.policy->own_values({plan_.shape, stack});
      require_own_symbols(own);
    }
    return own;
  }

  /// Refuses a rule's own symbol with the text of another, by which formulas would take one for the other, and
  /// one with a value for each layer that does not vary.
  static void require_own_symbols(const std::vector<policy::OwnValues>& own) {
    std::vector<const Symbol*> all(scaling::known_symbols.begin(), scaling::known_symbols.end());
    for (const policy::OwnValues& values : own) {
      const Symbol& symbol = *values.symbol;
      for (const Symbol* other : all) {
        const std::string_view text = symbol.text;
        if (other == &symbol || (text != other->text && text != other->ratio_text)) continue;
        throw InvalidInput("symbol", symbol.text, "a text that no other symbol has",
                           "it is that of " + std::string(other->meaning));
      }
      if (values.by_layer.size() > 1 && !symbol.varies) {
        throw InvalidInput(symbol.text, "a value for each layer",
                           "one value, or a symbol that varies");
      }
      all.push_back(&symbol);
    }
  }

  // ---- numbers from cells ------------------------------------------------------------------------

  /// Evaluates a cell, and lists its symbols for the plan.
  template <Kind kind>
  Number<kind> evaluated(const Cell<kind>& cell, const architecture::Values& at) {
    const Scaling& scaling = cell.scaling;
    if (scaling.needs_base() && !plan_.base) {
      throw InvalidInput("base", "none", "the shape of the model that was tuned",
                         plan_.rule + " needs a base, and there is no default");
    }
    for (const scaling::Factor& factor : scaling.factors()) {
      if (!factor.is_integer() && !factor.symbol->varies) list(factor);
    }
    return {architecture::evaluate(scaling, at), scaling};
  }

  /// Lists the symbol of a factor, once.
  void list(const scaling::Factor& factor) {
    auto place = listed_.begin();
    while (place != listed_.end() && place->before(factor)) ++place;
    if (place == listed_.end() || !place->same_symbol(factor)) listed_.insert(place, factor);
  }

  /// Lists the symbols of a cell whose values are its own.
  static void list_own_symbols(const Scaling& cell, const architecture::Values& at,
                               std::vector<plan::SymbolValue>& where) {
    for (const scaling::Factor& factor : cell.factors()) {
      if (factor.symbol->varies) list_once(where, symbol_value(factor, at));
    }
  }

  static Scaling with_fans(const Scaling& cell, const Scaling& fan_in, const Scaling& fan_out) {
    return substitute(substitute(cell, symbols::fan_in, fan_in), symbols::fan_out, fan_out);
  }

  /// Writes L as N_e in the encoder and N_d elsewhere, where a model has two stacks.
  Scaling in_stack(const Scaling& cell, Stack stack) const {
    if (plan_.shape.encoder_depth == 0) return cell;
    return substitute(cell, symbols::depth,
                      stack == Stack::encoder ? symbols::encoder_depth : symbols::decoder_depth);
  }

  // ---- tensors -----------------------------------------------------------------------------------

  void add(const Tensor& tensor) {
    Row row = row_of(tensor);
    if (!row.stated) {
      throw InvalidInput(tensor.name,
                         "a tensor of the group " + std::string(to_string(tensor.group)),
                         "one of those that " + plan_.rule + " states");
    }
    // Muon leaves all but hidden matrices to AdamW.
    const Optimizer optimizer = policy::optimizer_of(plan_.optimizer, tensor.group);
    if (tensor.own_values) row = policy::with_own_values(row, optimizer);
    architecture::Values at = values_at(tensor.stack, tensor.layer);
    row.rates.set(optimizer, row.rate(optimizer).scaling / own_factor(optimizer, tensor, at));
    row.weight_decay = decay_of(row, optimizer);
    if (optimizer.normalization == policy::Normalization::by_matrix) row.epsilon = 1;  // not Adam's
    const double fan_in = architecture::evaluate(tensor.fan_in, at);
    const double fan_out = architecture::evaluate(tensor.fan_out, at);
    at.set(symbols::fan_total, fan_in + fan_out);

    std::vector<plan::SymbolValue> where;
    const auto planned = [&]<Kind kind>(const Cell<kind>& cell) {
      const Scaling bound =
          in_stack(with_fans(cell.scaling, tensor.fan_in, tensor.fan_out), tensor.stack);
      const Number<kind> result = evaluated<kind>(bound, at);
      list_own_symbols(bound, at, where);
      return result;
    };
    plan_.entries.push_back({.name = tensor.name,
                             .group = tensor.group,
                             .stack = tensor.stack,
                             .layer = tensor.layer,
                             .rows = tensor.rows,
                             .columns = tensor.columns,
                             .fan_in = fan_in,
                             .fan_out = fan_out,
                             .optimizer = optimizer,
                             .distribution = row.distribution,
                             .init_variance = planned(row.init_variance),
                             .init_mean = planned(row.init_mean),
                             .multiplier = planned(row.multiplier),
                             .learning_rate = planned(row.rate(optimizer)),
                             .weight_decay = planned(row.weight_decay),
                             .epsilon = planned(row.epsilon),
                             .source = std::string(row.source),
                             .where = std::move(where)});
  }

  /// The optimizer's own factor on its steps, over the base's where the rule is relative.
  Scaling own_factor(const Optimizer& optimizer, const Tensor& tensor,
                     const architecture::Values& at) const {
    const bool relative = plan_.reference == Reference::base;
    const auto fan = [&](const Symbol& symbol) { return Scaling(symbol, relative); };
    switch (optimizer.own_factor) {
      case policy::OwnFactor::one:
        return 1;
      case policy::OwnFactor::fan_ratio:
        return sqrt(fan(symbols::fan_out) / fan(symbols::fan_in));
      case policy::OwnFactor::original:
        return sqrt(larger_fan(tensor, at) / fan(symbols::fan_in));
      case policy::OwnFactor::larger_fan:
        return sqrt(larger_fan(tensor, at));
      case policy::OwnFactor::match_adamw:
        return (relative ? 1 : 0.2) * sqrt(larger_fan(tensor, at));
    }
    return 1;
  }

  /// The larger fan, over the base's where the rule is relative: a number if it is another one there.
  Scaling larger_fan(const Tensor& tensor, const architecture::Values& at) const {
    const double in = architecture::evaluate(tensor.fan_in, at),
                 out = architecture::evaluate(tensor.fan_out, at);
    const bool relative = plan_.reference == Reference::base;
    const double base_in = relative ? in / architecture::evaluate(ratio(tensor.fan_in), at) : in;
    const double base_out =
        relative ? out / architecture::evaluate(ratio(tensor.fan_out), at) : out;
    if (in >= out && base_in >= base_out) return Scaling(symbols::fan_in, relative);
    if (in <= out && base_in <= base_out) return Scaling(symbols::fan_out, relative);
    return (std::max)(in, out) / (std::max)(base_in, base_out);
  }

  /// The rule's decay in the form that the plan is asked for: shrink per step is the same.
  Scaling decay_of(const Row& row, const Optimizer& optimizer) const {
    const Scaling& stated = row.weight_decay.scaling;
    const Scaling& rate = row.rate(optimizer).scaling;
    if (stated.is_zero()) return 0;
    // Where gradients are not normalized, L2 and coupled decay are the same.
    if (plan_.decay == DecayForm::l2 && optimizer.normalization != policy::Normalization::none) {
      if (rate != Scaling(1) || optimizer.normalization == policy::Normalization::by_matrix) {
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

  // ---- tensors of the user's own -----------------------------------------------------------------

  void add_extras() {
    if (plan_.extras.empty()) return;
    std::set<std::string> names;
    for (const Entry& entry : plan_.entries) names.insert(entry.name);
    for (const Tensor& tensor : architecture::extra_tensors(plan_.extras, plan_.shape)) {
      if (!names.insert(tensor.name).second) {
        throw InvalidInput("extra", messages::printable(tensor.name),
                           "a name that no other tensor has");
      }
      if (tensor.layer < 0 && varies(row_of(tensor), tensor.group)) {
        throw InvalidInput("extra", messages::printable(tensor.name), "a name with * for the layer",
                           "in " + plan_.rule + " the row of " +
                               std::string(to_string(tensor.group)) +
                               " differs from layer to layer");
      }
      require_sides(tensor);
      add(tensor);
    }
    if (plan_.base)
      static_cast<void>(architecture::extra_tensors(plan_.extras, *plan_.base));  // has its sizes
  }

  /// Whether a row has other numbers in each layer. fi + fo varies from tensor to tensor, not from layer to layer.
  bool varies(const Row& row, Group group) const {
    bool found = false;
    policy::for_each_cell(row, policy::optimizer_of(plan_.optimizer, group), [&](const auto& cell) {
      for (const scaling::Factor& factor : cell.scaling.factors()) {
        found = found || (factor.symbol->varies && factor.symbol != &symbols::fan_total);
      }
    });
    return found;
  }

  /// Refuses an extra for whose matrix a row is not meant: a row that names sizes of the model, such as 1/n for a query,
  /// rather than fans, holds for a matrix with the same inputs and outputs alone.
  void require_sides(const Tensor& extra) {
    if (!architecture::is_matrix(extra.group) || architecture::is_of_experts(extra.group)) return;
    const Row row = row_of(extra);
    const Optimizer& optimizer = policy::optimizer_of(plan_.optimizer, extra.group);
    if (!names_a_size(row.init_variance.scaling) && !names_a_size(row.rate(optimizer).scaling))
      return;
    bool alike = false;
    Shape whole = plan_.shape;  // with the matrices that not every model has
    whole.tied_head = false;
    whole.gated_mlp = whole.learned_positions = true;
    whole.segments = 1;
    const architecture::Values at = values_at(extra.stack);
    const auto same = [&](const Scaling& a, const Scaling& b) {
      return architecture::evaluate(a, at) == architecture::evaluate(b, at) &&
             (!plan_.base ||
              architecture::evaluate(ratio(a), at) == architecture::evaluate(ratio(b), at));
    };
    architecture::for_each_tensor(whole, plan_.base.value_or(plan_.shape), [&](const Tensor& own) {
      alike = alike || (own.group == extra.group && same(own.fan_in, extra.fan_in) &&
                        same(own.fan_out, extra.fan_out));
    });
    if (alike) return;
    throw InvalidInput(
        "extra", messages::printable(extra.name),
        "the inputs and outputs of the shape's own " + std::string(to_string(extra.group)),
        plan_.rule + " states them by sizes of the model, not by a matrix's fans");
  }

  static bool names_a_size(const Scaling& cell) {
    using namespace symbols;
    return depends_on(cell, {&d_model, &d_ff, &mlp_ratio, &heads, &kv_heads, &head_dim, &vocab,
                             &context, &patch_dim, &classes});
  }

  // ---- the model as a whole ----------------------------------------------------------------------

  void add_model() {
    const Stack stack = last_stack(plan_.shape);  // the decoder, or the only one
    if (stack == Stack::decoder) add_residuals(Stack::encoder);
    add_residuals(stack);

    const ModelRow row = rule_.policy->model({plan_.shape, stack});
    const architecture::Values at = values_at(stack);
    const bool listed = plan_.shape.blocks == Blocks::listed;  // whose entries keep their own
    const auto multiplier_of = [&](Group group, const Scaling& fan_in, const Scaling& fan_out) {
      const Row end = rule_.policy->row(group, {plan_.shape, stack, plan_.base});
      return listed ? Scaling(1) : with_fans(end.multiplier.scaling, fan_in, fan_out);
    };
    using symbols::n;
    const bool tied = *plan_.shape.tied_head;
    const bool token = plan_.shape.input == Input::token;
    const Scaling logits =
        row.logit_multiplier.scaling *
        (tied ? row.tied_logit_multiplier.scaling : multiplier_of(Group::head, n, symbols::n_out));
    const Scaling embedding = multiplier_of(token ? Group::token_embedding : Group::patch_embedding,
                                            token ? Scaling(1) : symbols::n_patch, n);
    if (architecture::has_heads(plan_.shape)) {
      plan_.model.attention_scale =
          evaluated(Multiplier(in_stack(row.attention_scale.scaling, stack)), at);
    }
    plan_.model.embedding_multiplier = evaluated(Multiplier(embedding), at);
    plan_.model.logit_multiplier = evaluated(Multiplier(logits), at);
    plan_.model.source = row.source;
  }

  void add_residuals(Stack stack) {
    const policy::Context context{plan_.shape, stack};
    const ModelRow row = rule_.policy->model(context);
    const Multiplier skip = in_stack(row.residual_skip.scaling, stack);
    const Multiplier branch = in_stack(row.residual_branch.scaling, stack);
    for (int layer = 0; layer < context.depth(); ++layer) {
      const architecture::Values at = values_at(stack, layer);
      Residual residual{stack, layer, evaluated(skip, at), evaluated(branch, at), {}};
      list_own_symbols(skip.scaling * branch.scaling, at, residual.where);
      plan_.model.residuals.push_back(std::move(residual));
    }
  }

  const Rule& rule_;
  Plan plan_;
  std::array<std::vector<policy::OwnValues>, 4> own_values_;  // by stack
  std::vector<scaling::Factor> listed_;                       // one of each symbol, in their order
};

}  // namespace scalewise::detail
