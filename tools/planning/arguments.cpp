// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/arguments.hpp"

#include <iostream>
#include <utility>

#include "scalewise/architecture/presets.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/policy/muon_names.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise::tools {

namespace {

std::optional<GivenModel> model_of(const std::string& program, const std::string& preset,
                                   const std::string& config) {
  if (!preset.empty()) return GivenModel{preset_shape(preset)};
  if (!config.empty()) return model_of_config(program, config);
  return {};
}

}  // namespace

void add_shape_options(frame::Options& options, PlanArguments& a) {
  options.add("--preset", a.preset);
  options.add("--config", a.config).reads().excludes("--preset");
  options.add("--base-preset", a.base_preset);
  options.add("--base-config", a.base_config).reads().excludes("--base-preset");
  for (const auto& [name, size] :
       {std::pair("--base-width", &a.base.width), std::pair("--base-depth", &a.base.depth)}) {
    options.add(name, *size, "0: the target's").excludes("--base-preset").excludes("--base-config");
  }
  options.add("--set", a.set).repeated();
  options.add("--extra", a.extra).repeated();
}

void add_plan_options(frame::Options& options, PlanArguments& a) {
  options.add("--optimizer", a.optimizer)
      .words(names_of(known_optimizers))
      .names([](const std::string& name, const std::string& option) {
        static_cast<void>(optimizer_id(name, option));
        return name;
      });
  options.add("--decay", a.decay).words(decay_words);
  options.add("--start", a.start).names(rule_id);
  options.add("--cut", a.cut).words(dialect::cut_words);
  options.add("--strict", a.strict);
  options.add("--fold", a.fold);
  options.add("--single-rate", a.single_rate).excludes("--fold");
}

void with_names(const std::string& program, const std::string& names,
                const std::function<void(const dialect::Dialect&)>& use) {
  if (names.ends_with(".json")) return use(read_dialect_file(names)->get());
  const dialect::Dialect& dialect = dialect::dialect_named("--names", names);
  if (!dialect.note.empty()) std::cerr << program << ": note: " << dialect.note << '\n';
  use(dialect);
}

std::optional<dialect::Cut> cut_of(const PlanArguments& arguments, const Plan& plan) {
  if (arguments.cut.empty()) return {};
  if (plan.optimizer.normalization != Normalization::by_matrix) {
    throw InvalidInput("--cut", arguments.cut, "--optimizer muon-… as well",
                       std::string(plan.optimizer.name) + " takes each number by itself");
  }
  return value_of(dialect::cut_words, "--cut", arguments.cut);
}

CodeFactors code_of_names(const std::string& names) {
  if (names.ends_with(".json")) return read_dialect_file(names)->get().code;
  return dialect::dialect_named("--names", names).code;
}

GivenModel model_of_config(const std::string& program, const std::string& path) {
  ModelConfig config = model_config_file(path);
  for (const std::string& note : config.notes) std::cerr << program << ": note: " << note << '\n';
  return {std::move(config.shape), config.code, config.initializer_std,
          std::move(config.initializer_key)};
}

std::optional<GivenModel> given_model(const PlanArguments& arguments) {
  return model_of(arguments.program, arguments.preset, arguments.config);
}

std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target) {
  return make_plans(
      arguments, std::move(target),
      model_of(arguments.program, arguments.base_preset, arguments.base_config),
      [&](const std::string& line) { std::cerr << arguments.program << ": " << line << '\n'; });
}

}  // namespace scalewise::tools
