// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <stdexcept>

#include "instances/registry.hpp"
#include "planning/set_option.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/plan/fold.hpp"
#include "scalewise/plan/set_up_warnings.hpp"
#include "scalewise/plan/single_rate.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise::tools {

namespace {

constexpr const char* how_to_give_a_base = "give --base-preset or --base-config";

std::optional<Shape> shape_of(const std::string& preset, const std::string& config) {
  if (!preset.empty()) return preset_shape(preset);
  if (!config.empty()) return shape_from_config_file(config);
  return {};
}

std::vector<std::string> preset_ids() {
  std::vector<std::string> ids;
  for (const Preset& preset : presets()) ids.emplace_back(preset.id);
  return ids;
}

/// Says what a plan was hardly meant to be; with --strict that is an error.
void warn(const Plan& plan, const PlanArguments& arguments) {
  const std::vector<std::string> warnings = set_up_warnings(plan);
  if (arguments.strict) require_none(plan.rule + " in a strict plan:", warnings);
  for (const std::string& text : warnings)
    std::cerr << arguments.program << ": warning: " << text << '\n';
}

/// As --single-rate and --fold ask for; what cannot be moved is said.
Plan rewritten(const Plan& plan, const PlanArguments& arguments) {
  if (!arguments.single_rate && !arguments.fold) return plan;
  const char* option = arguments.fold ? "--fold" : "--single-rate";
  const RewrittenPlan result = arguments.fold ? fold(plan) : single_rate(plan);
  for (const std::string& line : result.left) {
    std::cerr << fmt::format("{}: {} of {} leaves {}\n", arguments.program, option, plan.rule,
                             line);
  }
  return result.plan;
}

/// Each parameter goes to the rules that have it; one that no rule has is an error.
std::vector<Plan> plans_of(const PlanArguments& arguments, const Shape& target,
                           const std::optional<Shape>& base,
                           const std::vector<Parameter>& parameters) {
  const auto optimizer = optimizer_named("--optimizer", arguments.optimizer);
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
    warn(plan, arguments);
    plan = rewritten(plan, arguments);
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

void add_shape_options(frame::Options& options, PlanArguments& a) {
  options.add("--preset", a.preset, "published shape, see --list-presets of plan")
      .names(preset_ids());
  options.add("--config", a.config, "Hugging Face config.json").reads().excludes("--preset");
  options.add("--base-preset", a.base_preset, "shape that rates were tuned on").names(preset_ids());
  options.add("--base-config", a.base_config, "the same from a config.json")
      .reads()
      .excludes("--base-preset");
  options
      .add("--set", a.set,
           "key=value: a field of the shape (base.key for the base) or a parameter of the rule")
      .repeated();
  options
      .add("--extra", a.extra,
           "NAME:GROUP:ROWS[,COLUMNS]: a tensor of your own, * for the layer in its name")
      .repeated();
}

void add_plan_options(frame::Options& options, PlanArguments& a) {
  options.add("--optimizer", a.optimizer, "").words(names_of(known_optimizers));
  options.add("--decay", a.decay, "form of weight decay").words(decay_words);
  options.add("--start", a.start, "rule by which the base model of a relative rule starts")
      .names(rule_ids(), rule_id);
  options.add("--strict", a.strict, "make warnings errors");
  options.add("--fold", a.fold, "put the multipliers of the forward pass into the weights");
  options.add("--single-rate", a.single_rate, "one learning rate for all, as multipliers instead")
      .excludes("--fold");
}

std::vector<std::string> dialect_ids() {
  std::vector<std::string> ids;
  for (const dialect::Dialect* known : dialect::all_dialects) ids.emplace_back(known->id);
  return ids;
}

void with_names(const std::string& names, const std::function<void(const dialect::Dialect&)>& use) {
  if (names.ends_with(".json")) return use(read_dialect_file(names)->get());
  use(dialect::dialect_named("--names", names));
}

std::vector<Extra> extras_of(const PlanArguments& arguments) {
  std::vector<Extra> extras;
  for (const std::string& text : arguments.extra) extras.push_back(extra_from_text(text));
  return extras;
}

std::optional<Shape> given_shape(const PlanArguments& arguments) {
  return shape_of(arguments.preset, arguments.config);
}

std::vector<Plan> make_plans(const PlanArguments& arguments, Shape target) {
  std::optional<Shape> base = shape_of(arguments.base_preset, arguments.base_config);
  const auto parameters = apply_settings(arguments.set, target, base, how_to_give_a_base);
  try {
    return plans_of(arguments, target, base, parameters);
  } catch (const InvalidInput& error) {
    if (error.field() != "base") throw;
    throw std::invalid_argument(std::string(error.what()) + "; " + how_to_give_a_base);
  }
}

}  // namespace scalewise::tools
