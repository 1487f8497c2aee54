// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "instances/registry.hpp"
#include "planning/set_option.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "scalewise/policy/muon_names.hpp"

namespace scalewise::tools {

namespace {

using Say = std::function<void(const std::string&)>;

constexpr const char* how_to_give_a_base =
    "give --base-width or --base-depth, --base-preset or --base-config";

/// Says what a plan was hardly meant to be; with --strict that is an error.
void warn(const Plan& plan, const PlanArguments& arguments, const Say& say) {
  const std::vector<std::string> warnings = set_up_warnings(plan);
  if (arguments.strict) require_none(plan.rule + " in a strict plan:", warnings);
  for (const std::string& text : warnings) say("warning: " + text);
}

/// As --single-rate and --fold ask for; what cannot be moved is said.
Plan rewritten(const Plan& plan, const PlanArguments& arguments, const Say& say) {
  if (!arguments.single_rate && !arguments.fold) return plan;
  const std::string option = arguments.fold ? "--fold" : "--single-rate";
  const RewrittenPlan result = arguments.fold ? fold(plan) : single_rate(plan);
  for (const std::string& line : result.left) {
    say(option + " of " + plan.rule + " leaves " + line);
  }
  return result.plan;
}

/// Says what was taken where the name is another than the id: alike words are different factors elsewhere.
Optimizer optimizer_of(const PlanArguments& arguments, const Say& say) {
  const std::string& name = arguments.optimizer;
  const Optimizer optimizer = optimizer_named("--optimizer", optimizer_id(name, "--optimizer"));
  if (optimizer.name != name) {
    say(fmt::format("note: {} ({}) is {}, which multiplies its steps by {}", name,
                    fmt::join(muons_named(name), " and "), optimizer.name,
                    own_factor_text(optimizer.own_factor)));
  }
  return optimizer;
}

/// Each parameter goes to the rules that have it; one that no rule has is an error.
std::vector<Plan> plans_of(const PlanArguments& arguments, const Shape& target,
                           const std::optional<Shape>& base,
                           const std::vector<Parameter>& parameters, const Say& say) {
  const Optimizer optimizer = optimizer_of(arguments, say);
  const auto decay = value_of(decay_words, "--decay", arguments.decay);
  std::vector<std::string> ids = arguments.compare;
  if (ids.empty()) ids.push_back(arguments.rule);

  std::vector<bool> used(parameters.size(), false);
  std::vector<std::string> known = shape_fields();
  std::vector<Plan> plans;
  for (const std::string& id : ids) {
    const std::vector<std::string> names = parameter_names(id);
    known.insert(known.end(), names.begin(), names.end());
    std::vector<Parameter> own;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (std::find(names.begin(), names.end(), parameters[i].name) == names.end()) continue;
      own.push_back(parameters[i]);
      used[i] = true;
    }
    plans.push_back(make_plan(id, optimizer, target, base, own, decay, extras_of(arguments)));
  }
  for (Plan& plan : plans) {
    if (!arguments.start.empty()) plan = with_start(plan, arguments.start);
    warn(plan, arguments, say);
    plan = rewritten(plan, arguments, say);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (used[i]) continue;
    throw InvalidInput("--set", parameters[i].name,
                       "a field of the shape or a parameter of the rule",
                       did_you_mean(parameters[i].name, known));
  }
  return plans;
}

}  // namespace

std::vector<Extra> extras_of(const PlanArguments& arguments) {
  std::vector<Extra> extras;
  for (const std::string& text : arguments.extra) extras.push_back(extra_from_text(text));
  return extras;
}

std::vector<Plan> make_plans(const PlanArguments& arguments, Shape target,
                             std::optional<Shape> base, const Say& say) {
  const std::vector<Parameter> parameters = set_target(arguments.set, target);
  if (arguments.base.width > 0 || arguments.base.depth > 0) {
    base = base_like(target, arguments.base);
  }
  set_base(arguments.set, base, how_to_give_a_base);
  try {
    return plans_of(arguments, target, base, parameters, say);
  } catch (const InvalidInput& error) {
    if (error.field() != "base") throw;
    throw std::invalid_argument(std::string(error.what()) + "; " + how_to_give_a_base);
  }
}

}  // namespace scalewise::tools
