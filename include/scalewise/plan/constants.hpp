// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/move_multiplier.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/scaling/read_formula.hpp"

namespace scalewise {

namespace plan {

/// Names of the constants of the whole model, and of those of a role or a group, after a dot: the numbers they multiply.
inline constexpr std::array<std::string_view, 5> constants_of_model{"logits", "scores", "branches",
                                                                    "rate", "decay"};
inline constexpr std::array<std::string_view, 4> constants_of_tensors{"rate", "std", "multiplier",
                                                                      "decay"};
/// How the base was trained: kept in a plan as they are given, in no number of it.
inline constexpr std::array<std::string_view, 2> records_of_training{"batch", "warmup"};

/// Whether a constant is such a record.
constexpr bool is_record(std::string_view constant) {
  return std::find(records_of_training.begin(), records_of_training.end(), constant) !=
         records_of_training.end();
}

/// The role of a group, as constants name it; any other is that of vectors.
constexpr std::string_view constant_role(Group group) {
  switch (role_of(group)) {
    case Role::input:
      return "embedding";
    case Role::hidden:
      return "hidden";
    case Role::output:
      return "output";
    case Role::rescaler:
      return "rescaler";
    default:
      return "vector";
  }
}

/// Every name that a constant can have: "logits", "embedding.rate", "query.std", "batch".
inline std::vector<std::string> constant_names() {
  std::vector<std::string> names(constants_of_model.begin(), constants_of_model.end());
  names.insert(names.end(), records_of_training.begin(), records_of_training.end());
  std::vector<std::string_view> targets{"embedding", "hidden", "output", "vector", "rescaler"};
  for (const architecture::GroupInfo& info : architecture::group_table) {
    if (info.group != Group::hidden) targets.push_back(info.id);
  }
  for (const std::string_view target : targets) {
    for (const std::string_view quantity : constants_of_tensors)
      names.push_back(std::string(target) + "." + std::string(quantity));
  }
  return names;
}

}  // namespace plan

namespace detail {

/// Multiplies the numbers of a plan by constants.
class PlanConstants {
 public:
  explicit PlanConstants(const Plan& plan) : plan_(plan) {}

  const Plan& run(const std::vector<Parameter>& constants) {
    for (const Parameter& constant : constants) multiply(constant);
    return plan_;
  }

 private:
  /// A symbol of its own, so that formulas and the list of symbols say where a factor is from.
  static Number<Kind::multiplier> factor_of(const Parameter& constant) {
    std::string latex = "c_{\\mathrm{";
    for (const char c : constant.name) latex += c == '_' ? "\\_" : std::string(1, c);
    return {constant.value, Scaling(stored_symbol("c_" + constant.name, latex + "}}",
                                                  "the constant " + constant.name))};
  }

  void multiply(const Parameter& constant) {
    plan_.constants.push_back(constant);
    if (plan::is_record(constant.name)) return;
    const Number<Kind::multiplier> factor = factor_of(constant);
    const std::size_t dot = constant.name.find('.');
    if (dot == std::string::npos && constant.name != "rate" && constant.name != "decay") {
      multiply_model(constant.name, factor);
    } else {
      const std::string target = dot == std::string::npos ? "" : constant.name.substr(0, dot);
      multiply_tensors(target, constant.name.substr(dot + 1), factor);
    }
    if (constant.value == 0) return;  // no formula has it
    const Symbol& symbol = *factor.scaling.factors().begin()->symbol;
    list_once(plan_.symbols, {symbol.text, symbol.latex, symbol.meaning, constant.value});
  }

  void multiply_model(const std::string& what, const Number<Kind::multiplier>& factor) {
    Model& model = plan_.model;
    if (what == "logits") times_power(model.logit_multiplier, factor, 1);
    if (what == "branches") {
      for (Residual& residual : model.residuals) times_power(residual.branch, factor, 1);
    }
    if (what != "scores") return;
    if (!architecture::has_heads(plan_.shape)) {
      throw InvalidInput("constant", "scores", "a constant of something in the model",
                         "the description does not say how wide heads are");
    }
    times_power(model.attention_scale, factor, 1);
  }

  void multiply_tensors(const std::string& target, const std::string& what,
                        const Number<Kind::multiplier>& factor) {
    bool found = false;
    for (Entry& entry : plan_.entries) {
      const bool covered = target.empty() || target == plan::constant_role(entry.group) ||
                           target == to_string(entry.group);
      if (!covered) continue;
      found = true;
      if (what == "std") times_power(entry.init_variance, factor, 2);
      if (what == "multiplier") times_multiplier(plan_, entry, factor);
      if (what == "rate") times_power(entry.learning_rate, factor, 1);
      // As with AdamW, whose decay goes with the rate: in either form the training is the same.
      if (what == "decay" || (what == "rate" && plan_.decay == DecayForm::independent)) {
        times_power(entry.weight_decay, factor, 1);
        if (factor.value == 0) entry.weight_decay = {0};
      }
    }
    if (found) return;
    const bool tied = target == "output" || target == "head";
    throw InvalidInput("constant", target + "." + what, "a constant of something in the model",
                       tied ? "its head is tied: logits is the constant of the logits"
                            : "it has no tensor of " + target);
  }

  Plan plan_;
};

/// A plan with the numbers that training sees, so that plans can be compared: multipliers are in the weights,
/// and what is normalized afterwards has the size 1. Adam's epsilon is left aside.
inline Plan seen_by_training(Plan plan) {
  const bool normalized = plan.shape.blocks == Blocks::normalized;
  if (plan.shape.embedding_norm) {
    const Number<Kind::multiplier> size = plan.model.embedding_multiplier;
    for (Entry& entry : plan.entries) {
      if (role_of(entry.group) == Role::input || entry.group == Group::patch_bias)
        times_power(entry.multiplier, size, -1);
    }
    plan.model.embedding_multiplier = {1, 1};
  }
  if (normalized || plan.shape.blocks == Blocks::shallow_encoder) {
    for (Residual& residual : plan.model.residuals) residual.branch = {1, 1};
  }
  for (Entry& entry : plan.entries) {
    if (plan::is_at_end(plan, entry)) entry.multiplier = {1, 1};  // the model's contain it
    if (!normalized || !architecture::is_matrix(entry.group)) continue;
    entry.init_variance = {1, 1};
    const bool reads_size = entry.group == Group::mlp_gate;  // the activation does
    if (role_of(entry.group) == Role::hidden && !reads_size) entry.multiplier = {1, 1};
  }
  plan = fold(plan).plan;
  if (plan.shape.qk_norm == QkNorm::none) return plan;
  const auto biased = [&](Group group) {
    const std::string bias = std::string(to_string(group)) + "_bias";
    return std::any_of(plan.entries.begin(), plan.entries.end(),
                       [&](const Entry& entry) { return entry.name.ends_with(bias); });
  };
  const bool query = !biased(Group::query), key = !biased(Group::key);
  for (Entry& entry : plan.entries) {
    const bool sized = (query && entry.group == Group::query) || (key && entry.group == Group::key);
    if (sized && entry.init_variance.value > 0)
      plan::store_times(plan, entry, {{std_dev(entry.init_variance), 1}}, -1);
  }
  return plan;
}

/// Whether two plans of seen_by_training() are one.
inline bool same_numbers(const Plan& a, const Plan& b) {
  const auto alike = [](const auto& x, const auto& y) {
    const double gap = x.value - y.value, size = y.value < 0 ? -y.value : y.value;
    return gap <= 1e-12 * size && gap >= -1e-12 * size;
  };
  bool same = alike(a.model.attention_scale, b.model.attention_scale) &&
              alike(a.model.embedding_multiplier, b.model.embedding_multiplier) &&
              alike(a.model.logit_multiplier, b.model.logit_multiplier);
  for (std::size_t i = 0; i < a.model.residuals.size(); ++i)
    same = same && alike(a.model.residuals[i].branch, b.model.residuals[i].branch);
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const Entry &x = a.entries[i], &y = b.entries[i];
    same = same && alike(x.init_variance, y.init_variance) && alike(x.init_mean, y.init_mean) &&
           alike(x.multiplier, y.multiplier) && alike(x.learning_rate, y.learning_rate) &&
           alike(x.weight_decay, y.weight_decay);
  }
  return same;
}

/// Refuses constants without which a plan trains the same: each alone, those of one target, and all.
class IdleConstants {
 public:
  explicit IdleConstants(const Plan& plan) : plan_(plan), seen_(seen_by_training(plan)) {}

  void refuse(std::vector<Parameter> constants) const {
    std::erase_if(constants, [](const Parameter& c) { return plan::is_record(c.name); });
    std::map<std::string, std::vector<Parameter>> by_target;
    for (const Parameter& constant : constants) {
      if (idle({constant})) refuse_one(constant.name);
      const std::size_t dot = constant.name.find('.');
      by_target[dot == std::string::npos ? "" : constant.name.substr(0, dot)].push_back(constant);
    }
    for (const auto& [target, some] : by_target) refuse_set(some);
    refuse_set(constants);
  }

 private:
  bool idle(const std::vector<Parameter>& constants) const {
    bool neutral = true;
    for (const Parameter& constant : constants) neutral = neutral && constant.value == 1;
    return !neutral && same_numbers(seen_by_training(PlanConstants(plan_).run(constants)), seen_);
  }

  [[noreturn]] static void refuse_one(const std::string& name) {
    throw InvalidInput("constant", name, "one that changes training",
                       name.ends_with("std")
                           ? "nothing that it names is drawn, or all is normalized"
                       : name.ends_with("decay") ? "nothing that it names decays"
                                                 : "what it multiplies is normalized");
  }

  void refuse_set(const std::vector<Parameter>& constants) const {
    if (constants.size() < 2 || !idle(constants)) return;
    std::string all;
    for (const Parameter& constant : constants) {
      all += (all.empty() ? "" : ",") + constant.name + "=" + numeric::number_text(constant.value);
    }
    throw InvalidInput("constants", all, "a set that changes training",
                       "the plan without them trains the same, as they only move a factor between "
                       "multipliers and weights: leave one of them out");
  }

  const Plan& plan_;
  Plan seen_;
};

}  // namespace detail

namespace plan {

/// A plan whose rule has other constants: factors that were tuned on the base, and are the same at all sizes.
/// Equation: `rate`, `decay` and `multiplier` multiply the number of that name, `std` the root of the variance;
///           `logits`, `scores` and `branches` multiply logit_multiplier, attention_scale and every branch.
///           Factors of the same number multiply each other. `batch` and `warmup` are records of how the base was
///           trained, and multiply nothing.
/// Source:   Yang, Hu et al. 2022 (arXiv:2203.03466v2), Table 2: what is tuned on a small model and
///           transferred
/// Units:    factors on those of the rule; a batch and a warm-up in any. In the independent form a rate takes the decay along, as in AdamW.
/// Throws:   InvalidInput for a name of no constant, or given twice; a value that is not from 1e-12 to 1e12, or 0 for a decay; a constant
///           of tensors that the model does not have; and constants without which the plan trains the same, up to
///           Adam's epsilon.
inline Plan with_constants(const Plan& plan, const std::vector<Parameter>& constants) {
  if (constants.empty()) return plan;
  const std::vector<std::string> known = constant_names();
  for (const Parameter& constant : constants) {
    const auto alike = [&](const Parameter& other) { return other.name == constant.name; };
    if (std::find(known.begin(), known.end(), constant.name) == known.end()) {
      throw InvalidInput("constant", messages::printable(constant.name),
                         "logits, scores, branches, rate, decay, or embedding, hidden, output, "
                         "vector, rescaler or "
                         "a group with .rate, .std, .multiplier or .decay, or as records batch and "
                         "warmup",
                         messages::did_you_mean(constant.name, known));
    }
    const bool exempts = constant.value == 0 && is_decay(constant.name);
    if (!exempts && !(constant.value >= 1e-12 && constant.value <= 1e12)) {
      throw InvalidInput(constant.name, numeric::number_text(constant.value),
                         is_decay(constant.name) ? "0, or a factor from 1e-12 to 1e12"
                                                 : "a factor from 1e-12 to 1e12");
    }
    if (std::count_if(constants.begin(), constants.end(), alike) > 1)
      throw InvalidInput("constant", constant.name, "each constant once");
  }
  Plan result = detail::PlanConstants(plan).run(constants);
  check_plan(result);
  detail::IdleConstants(plan).refuse(constants);
  return result;
}

/// The constants `rate` and `decay` under which hidden matrices train as in a run that has one learning rate and one
/// weight decay for all tensors.
/// Equation: rate lr/λ, decay wd/δ, λ and δ the factors of queries; under neural-tangent scaling and AdamW
///           n^(3/2) lr and n^(-3/2) wd, under meta-principled n^((3-s)/2) lr and n^((s-3)/2) wd
/// Source:   Dinan, Yaida, Zhang 2023 (arXiv:2304.02034v1), II 1 E and II 2 E.
/// Units:    a plan with them is trained at a rate and a decay of 1. A decay of 0 has no constant.
/// Throws:   InvalidInput for a plan relative to a base, one whose queries differ between layers or do not decay, a
///           rate that is not positive and a decay that is negative.
inline std::vector<Parameter> constants_of_standard(const Plan& plan, double rate,
                                                    double decay = 0) {
  if (!(rate > 0)) throw InvalidInput("rate", numeric::number_text(rate), "a positive number");
  if (!(decay >= 0)) throw InvalidInput("decay", numeric::number_text(decay), "0 or more");
  const std::vector<const Entry*> queries = plan.of(Group::query);
  const auto differs = [&](const Entry* entry) {
    return entry->learning_rate.value != queries.front()->learning_rate.value ||
           entry->weight_decay.value != queries.front()->weight_decay.value;
  };
  if (queries.empty() || std::any_of(queries.begin(), queries.end(), differs)) {
    throw InvalidInput("rule", plan.rule, "queries with one rate and decay in all layers",
                       plan.shape.blocks == Blocks::listed
                           ? "a list does not say which matrix makes queries; give a shape"
                           : "these decide how a rate for all tensors is converted");
  }
  const Entry& query = *queries.front();
  if (plan.reference == Reference::base || query.learning_rate.scaling.needs_base()) {
    throw InvalidInput("rule", plan.rule, "one with rates of its own, such as neural-tangent",
                       "this one multiplies the rate of the base, whose tuned rate it takes");
  }
  std::vector<Parameter> constants{{"rate", rate / query.learning_rate.value}};
  if (decay == 0) return constants;
  if (query.weight_decay.value == 0)
    throw InvalidInput("decay", numeric::number_text(decay), "0", plan.rule + " does not decay");
  // The constant of the rate takes an independent decay along.
  const double taken = plan.decay == DecayForm::independent ? constants[0].value / rate : 1;
  constants.push_back({"decay", decay / (query.weight_decay.value * taken)});
  return constants;
}

}  // namespace plan

}  // namespace scalewise
