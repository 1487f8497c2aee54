// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "scalewise/messages/error.hpp"
#include "scalewise/plan/check_plan.hpp"
#include "scalewise/plan/move_multiplier.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise {

namespace detail {

/// Combines a relative plan with the plan of its base's initialization.
class PlanStart {
 public:
  PlanStart(const Plan& plan, const Plan& start) : plan_(plan), start_(start) {}

  Plan run() && {
    check();
    for (const Entry& entry : start_.entries) {
      by_name_.emplace(entry.name, &entry);
      if (plan_.base->depth == plan_.shape.depth) continue;
      const Entry* first = of_start(name_in_first_layer(start_, entry));
      if (first != nullptr && first->init_variance.value != entry.init_variance.value) {
        refuse(entry.name +
                   " starts otherwise than layer 0, so that there is no start for other depths",
               "give both models the same depth");
      }
    }
    for (Entry& entry : plan_.entries) apply(entry);
    plan_.start = start_.rule;
    plan_.reference = Reference::absolute;
    check_plan(plan_);
    return std::move(plan_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& hint = {}) const {
    throw InvalidInput("start", start_.rule, "a rule that can initialize the base of " + plan_.rule,
                       why + (hint.empty() ? "" : ": " + hint));
  }

  void check() const {
    if (!plan_.constants.empty())
      refuse("the plan has constants already", "ask make_plan() for both at once");
    if (plan_.reference != Reference::base) refuse(plan_.rule + " says itself how a model starts");
    if (start_.reference != Reference::absolute)
      refuse(start_.rule + " does not say how a model starts");
    for (const Entry& entry : start_.entries) {
      if (entry.multiplier.value != 1) refuse("its " + entry.name + " has a multiplier");
    }
    bool branches =
        start_.model.embedding_multiplier.value != 1 || start_.model.logit_multiplier.value != 1;
    for (const Residual& residual : start_.model.residuals) {
      branches = branches || residual.skip.value != 1 || residual.branch.value != 1;
    }
    if (branches) refuse("it has multipliers in the forward pass");
    if (start_.shape.residual_gain != plan_.base->residual_gain) {
      refuse("it has gains on the branches, which " + plan_.rule + " does not have");
    }
    if (has_branch_multipliers() && by_depth()) {
      refuse("branches would be scaled twice by the depth",
             "use an initialization without it, such as standard");
    }
  }

  /// Those that are 1 at this depth too.
  bool has_branch_multipliers() const {
    for (const Residual& residual : plan_.model.residuals) {
      if (residual.branch.scaling != Scaling(1)) return true;
    }
    return false;
  }

  /// Whether a variance of the start depends on the depth, or on the layer.
  bool by_depth() const {
    return std::any_of(start_.entries.begin(), start_.entries.end(), [](const Entry& entry) {
      const Scaling& variance = entry.init_variance.scaling;
      return depends_on_depth(variance) || depends_on(variance, {&symbols::layer});
    });
  }

  const Entry* of_start(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  void apply(Entry& entry) {
    const Entry* found = of_start(entry.name);
    if (found == nullptr) found = of_start(name_in_first_layer(plan_, entry));
    if (found == nullptr) {
      refuse("the base has no " + entry.name, "give both models the same tensors");
    }
    const Entry& base = *found;
    if (entry.distribution == Distribution::own) return;
    if (entry.init_variance.value > 0) {
      times_power(entry.init_variance, of_base(base.init_variance, base), 1);
      entry.distribution = base.distribution;
    }
    entry.init_mean = of_base(base.init_mean, base);
    times_power(entry.init_mean, entry.multiplier, -1);  // so that it acts as the base's
    entry.source += "; start: " + start_.rule;
    if (!base.source.empty()) entry.source += ", " + base.source;
  }

  /// A number of the base in the sizes of the target, over which the base's are s/m_s.
  template <Kind kind>
  Number<kind> of_base(const Number<kind>& number, const Entry& base) {
    Scaling result = number.scaling.number();
    for (const scaling::Factor& factor : number.scaling.factors()) {
      const Symbol& symbol = *factor.symbol;
      if (factor.is_integer()) {
        result = result * pow(Scaling(factor.integer), factor.exponent);
      } else if (const double* own = value_of_start(symbol, base)) {
        result = result * numeric::power(*own, factor.exponent);
      } else {
        const Scaling size = Scaling(symbol) / Scaling(symbol, true);
        list_symbols(plan_, size);
        result = result * pow(size, factor.exponent);
      }
    }
    return {number.value, result};
  }

  /// The value of a symbol that is not a size of the shapes: one of the tensor, or of the start's rule.
  const double* value_of_start(const Symbol& symbol, const Entry& base) const {
    for (const plan::SymbolValue& own : base.where) {
      if (own.text == symbol.text) return &own.value;
    }
    for (const Symbol* known : scaling::known_symbols) {
      if (known == &symbol) return nullptr;
    }
    for (const plan::SymbolValue& listed : start_.symbols) {
      if (listed.text == symbol.text) return &listed.value;
    }
    return nullptr;
  }

  Plan plan_;
  const Plan& start_;
  std::map<std::string, const Entry*> by_name_;
};

}  // namespace detail

/// A relative plan with the initialization of its base model put in: absolute numbers, so that two plans
/// need not be multiplied by hand.
/// Equation: variance = the relative plan's factor · the variance that `start` gives the base's tensor, which
///           is zero where the factor is; mean = the mean that `start` gives it, over the relative plan's multiplier
/// Units:    variances of the result are variances; its reference is Reference::absolute. Learning rates,
///           decays and multipliers are those of `plan`
/// Requires: `start`, an absolute plan for plan.base.
/// Throws:   InvalidInput for a plan that is not relative, a `start` that is relative, has multipliers in the
///           forward pass or gains on its branches, has the depth in its variances where `plan` has multipliers on its branches, as
///           these would be scaled twice, or initializes layers differently where the depths differ.
inline Plan with_start(const Plan& plan, const Plan& start) {
  return detail::PlanStart(plan, start).run();
}

}  // namespace scalewise
