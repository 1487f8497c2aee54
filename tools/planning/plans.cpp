// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "planning/set_option.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "scalewise/policy/muon_names.hpp"

namespace scalewise::tools {

namespace {

constexpr const char* how_to_give_a_base =
    "give --base-width or --base-depth, --base-preset or --base-config";

/// Says what a plan was hardly meant to be; with --strict that is an error.
void warn(const Plan& plan, const PlanArguments& arguments, const Say& say) {
  std::vector<std::string> warnings = without_effect(arguments.set, plan);
  for (std::string& text : set_up_warnings(plan)) warnings.push_back(std::move(text));
  if (arguments.strict) messages::require_none(plan.rule + " in a strict plan:", warnings);
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
  const Optimizer optimizer =
      policy::optimizer_named("--optimizer", policy::optimizer_id(name, "--optimizer"));
  if (optimizer.name != name) {
    say(fmt::format("note: {} ({}) is {}, which multiplies its steps by {}", name,
                    fmt::join(policy::muons_named(name), " and "), optimizer.name,
                    policy::own_factor_text(optimizer.own_factor)));
  }
  return optimizer;
}

/// The factors of the code, of the target and of its base.
Plan coded(Plan plan, const PlanArguments& arguments, const GivenModel& target,
           const std::optional<GivenModel>& base) {
  const plan::CodeFactors code = target.code ? *target.code : arguments.names_code;
  return plan::with_code(std::move(plan), code, base && base->code ? *base->code : code);
}

/// Whether a plan draws with the standard deviation of a rule where the configuration has another.
void compare_initializer(const Plan& plan, const GivenModel& model, const Say& say) {
  const std::optional<double> given = model.initializer_std;
  for (const Parameter& constant : plan.constants) {
    if (constant.name.ends_with(".std")) return;  // another than the rule's is meant
  }
  for (const Entry& entry : plan.entries) {
    if (!given || entry.source.find("initializer_range 0.02") == std::string::npos) continue;
    const double ratio = *given / 0.02;
    if (ratio > 1 - 1e-6 && ratio < 1 + 1e-6) return;
    return say("note: the configuration has " + model.initializer_key + " = " +
               numeric::number_text(*given) +
               ", the plan has 0.02: multiply the variances of matrices by " +
               numeric::number_text(ratio * ratio) + " to start as the configuration says");
  }
}

/// With the constants of --constant, and those that --from-standard amounts to.
Plan planned(const std::string& id, PlanRequest request, const PlanArguments& arguments) {
  std::vector<Parameter> constants = constants_of(arguments.constants);
  if (!arguments.from_standard.empty()) {
    const std::string option = "--from-standard", example = "rate=0.001,decay=0.01";
    double rate = 0, decay = 0;
    for (const Parameter& tuned : constants_of({arguments.from_standard}, option, example)) {
      if (tuned.name != "rate" && tuned.name != "decay")
        throw InvalidInput(option, tuned.name, "rate or decay",
                           "such as " + option + " " + example);
      (tuned.name == "rate" ? rate : decay) = tuned.value;
    }
    for (Parameter& constant : plan::constants_of_standard(make_plan(id, request), rate, decay))
      constants.push_back(std::move(constant));
  }
  request.constants = std::move(constants);
  return make_plan(id, request);
}

/// Each parameter goes to the rules that have it; one that no rule has is an error.
std::vector<Plan> plans_of(const PlanArguments& arguments, const GivenModel& target,
                           const std::optional<GivenModel>& base,
                           const std::vector<Parameter>& parameters, const Say& say) {
  const Optimizer optimizer = optimizer_of(arguments, say);
  std::vector<std::string> ids = arguments.compare;
  if (ids.empty()) ids.push_back(arguments.rule);

  std::vector<bool> used(parameters.size(), false);
  std::vector<std::string> known = architecture::shape_fields();
  std::vector<Plan> plans;
  for (const std::string& id : ids) {
    const std::vector<std::string> names = policy::parameter_names(id);
    known.insert(known.end(), names.begin(), names.end());
    std::vector<Parameter> own;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (std::find(names.begin(), names.end(), parameters[i].name) == names.end()) continue;
      own.push_back(parameters[i]);
      used[i] = true;
    }
    std::vector<Extra> extras = target.tensors;
    for (Extra& extra : extras_of(arguments)) extras.push_back(std::move(extra));
    plans.push_back(planned(
        id,
        {.model = target.shape,
         .base = base ? std::optional(base->shape) : std::nullopt,
         .optimizer = optimizer,
         .decay = arguments.decay,
         .parameters = own,
         .extras = extras,
         .start = arguments.start.empty() ? std::nullopt : std::optional<Rule>(arguments.start)},
        arguments));
  }
  for (Plan& plan : plans) {
    warn(plan, arguments, say);
    plan = coded(std::move(plan), arguments, target, base);
    const bool of_base =
        !plan.start.empty() && base;  // a started plan begins with the base's numbers
    compare_initializer(plan, of_base ? *base : target, say);
    plan = rewritten(plan, arguments, say);
    for (const std::string& note : plan::code_notes(plan)) say("note: " + note);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (used[i]) continue;
    throw InvalidInput("--set", parameters[i].name,
                       "a field of the shape or a parameter of the rule",
                       messages::did_you_mean(parameters[i].name, known));
  }
  return plans;
}

}  // namespace

std::vector<Extra> extras_of(const PlanArguments& arguments) {
  std::vector<Extra> extras;
  for (const std::string& text : arguments.extra)
    extras.push_back(architecture::extra_from_text(text));
  return extras;
}

std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target,
                             std::optional<GivenModel> base, const Say& say) {
  const std::vector<Parameter> parameters = set_target(arguments.set, target.shape);
  if (arguments.base != Base{}) {
    base = target;
    base->shape = base_like(target.shape, arguments.base);
  }
  std::optional<Shape> base_shape = base ? std::optional(base->shape) : std::nullopt;
  set_base(arguments.set, base_shape, how_to_give_a_base);
  if (base) base->shape = *base_shape;
  try {
    return plans_of(arguments, target, base, parameters, say);
  } catch (const InvalidInput& error) {
    if (error.field() != "base") throw;
    throw std::invalid_argument(std::string(error.what()) + "; " + how_to_give_a_base);
  }
}

}  // namespace scalewise::tools
