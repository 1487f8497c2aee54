// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/arguments.hpp"

#include <utility>

#include "frame/progress.hpp"
#include "planning/described.hpp"
#include "planning/rule_options.hpp"
#include "scalewise/architecture/same_growth.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/description_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/policy/muon_names.hpp"

namespace scalewise::tools {

namespace {

io::ConfigDescription described_file(const std::string& path) {
  return {read_description_file(path), {.blocks = Blocks::listed}, {}, {}};
}

/// Says a line on standard error.
Say on_terminal(const std::string& program) {
  return [program](const std::string& line) { frame::say_once(program + ": " + line); };
}

/// That of a file, or of a preset that no shape describes; empty where there is neither.
std::optional<NamedConfig> config_of(const std::string& preset, const std::string& path) {
  if (!path.empty()) return NamedConfig{io::read_config_file(path), path};
  return config_of_preset(preset);
}

/// The descriptions of --model and --base-model, or of --config or --preset, whose configuration is read already.
std::optional<DescribedSizes> described_sizes(const PlanArguments& a,
                                              const std::optional<NamedConfig>& config) {
  if (!a.model.empty() && !a.base_model.empty())
    return DescribedSizes{described_file(a.model), described_file(a.base_model)};
  if (!a.check_model.empty()) throw InvalidInput("--check-model", a.check_model, "--model as well");
  if (!a.model.empty()) {
    throw InvalidInput("--base-model", "none", "a description of the same model at another width",
                       "what grows between the two says the role of each tensor");
  }
  if (!a.base_model.empty()) throw InvalidInput("--base-model", a.base_model, "--model as well");
  if (config && has_no_shape(*config)) {
    const auto base = config_of(a.base_preset, a.base_config);
    return described_config(a, *config, base, on_terminal(a.program));
  }
  if (!a.role.empty())
    throw InvalidInput("--role", a.role.front(),
                       "--model, or a --config or --preset without a shape");
  return {};
}

std::optional<GivenModel> model_of(const std::string& program, const std::string& preset,
                                   const std::string& config) {
  if (!config.empty() && preset.empty()) return model_of_config(program, config);
  return model_of_preset(preset);
}

}  // namespace

void exclude(frame::Options& options, std::span<const Exclusion> exclusions) {
  for (const Exclusion& one : exclusions) options.at(one.option).excludes(one.other);
}

void add_shape_options(frame::Options& options, PlanArguments& a) {
  options.add("--preset", a.preset, "published shape, see plan --list-presets");
  options.add("--config", a.config, "Hugging Face config.json").reads();
  options.add("--base-preset", a.base_preset, "published shape that rates were tuned on");
  options.add("--base-config", a.base_config, "config.json of the model that rates were tuned on")
      .reads();
  options.add("--base-width", a.base.width,
              "width of a base that is like the target otherwise (0: the target's)");
  options.add("--base-depth", a.base.depth,
              "depth of a base that is like the target otherwise (0: the target's)");
  options.add("--base-experts", a.base.experts,
              "number of experts of a base that is like the target otherwise (0: the target's)");
  exclude(options, shape_exclusions);
  add_set_option(options, a.set);
  options
      .add("--extra", a.extra,
           "NAME:GROUP:ROWS[,COLUMNS]: a tensor of your own, * for the layer in its name")
      .repeated();
}

void add_description_options(frame::Options& options, PlanArguments& a) {
  options.add("--model", a.model, "description of a model of any architecture (docs/any_model.md)")
      .reads()
      .excludes("--preset")
      .excludes("--config");
  options
      .add("--base-model", a.base_model, "description of it at the size that rates were tuned on")
      .reads()
      .excludes("--base-preset")
      .excludes("--base-config")
      .excludes("--base-width")
      .excludes("--base-depth")
      .excludes("--base-experts");
  options
      .add("--check-model", a.check_model,
           "description of it at a third size, which has to grow as the two do")
      .reads();
  options
      .add("--role", a.role,
           "PATTERN=ROLE: tensors of --model, * for any text, are input, hidden, output, vector, "
           "router or expert")
      .repeated();
}

void add_plan_options(frame::Options& options, PlanArguments& a) {
  options.add("--optimizer", a.optimizer, "optimizer")
      .words(policy::names_of(policy::known_optimizers))
      .names([](const std::string& name, const std::string& option) {
        static_cast<void>(policy::optimizer_id(name, option));
        return name;
      });
  options.add("--decay", a.decay, policy::decay_words, "form of weight decay");
  add_start_option(options, a.start);
  add_constant_option(options, a.constants);
  options.add(
      "--from-standard", a.from_standard,
      "rate=LR,decay=WD: what a run with one rate and decay was tuned to; the plan's hidden "
      "matrices get it");
  options.add("--cut", a.cut, dialect::cut_words,
              "what Muon cuts out of fused matrices before it normalizes them");
  options.add("--strict", a.strict, "make warnings errors");
  options.add("--fold", a.fold, "put the multipliers of the forward pass into the weights");
  options.add("--single-rate", a.single_rate, "one learning rate for all, as multipliers instead");
  exclude(options, rewriting_exclusions);
}

void with_names(const std::string& program, const std::string& names,
                const std::function<void(const dialect::Dialect&)>& use) {
  if (names.ends_with(".json")) return use(read_dialect_file(names)->get());
  const dialect::Dialect& dialect = dialect::dialect_named("--names", names);
  if (!dialect.note.empty()) frame::say_once(program + ": note: " + std::string(dialect.note));
  use(dialect);
}

std::optional<dialect::Cut> cut_of(const PlanArguments& arguments, const Plan& plan) {
  if (!arguments.cut) return {};
  if (plan.optimizer.normalization != policy::Normalization::by_matrix) {
    throw InvalidInput("--cut", std::string(word(dialect::cut_words, *arguments.cut)),
                       "--optimizer muon-… as well",
                       std::string(plan.optimizer.name) + " takes each number by itself");
  }
  return arguments.cut;
}

plan::CodeFactors code_of_names(const std::string& names) {
  if (names.ends_with(".json")) return read_dialect_file(names)->get().code;
  return dialect::dialect_named("--names", names).code;
}

GivenModel model_of_config(const std::string& program, const std::string& path) {
  return given_config({io::read_config_file(path), path}, on_terminal(program));
}

AskedModel asked_model(const PlanArguments& a) {
  const std::optional<NamedConfig> config = config_of(a.preset, a.config);
  if (const auto sizes = described_sizes(a, config)) {
    CodedModel model = described_model(a, *sizes, on_terminal(a.program));
    if (!a.check_model.empty()) {
      architecture::require_same_growth(sizes->target.model, sizes->base.model,
                                        read_description_file(a.check_model));
    }
    return {std::move(model), {}};
  }
  return {{}, config ? given_config(*config, on_terminal(a.program)) : given_model(a)};
}

std::vector<Plan> make_plans(const PlanArguments& arguments, const CodedModel& model) {
  return make_plans(arguments, model, on_terminal(arguments.program));
}

std::optional<GivenModel> given_model(const PlanArguments& arguments) {
  return model_of(arguments.program, arguments.preset, arguments.config);
}

std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target) {
  return make_plans(arguments, std::move(target),
                    model_of(arguments.program, arguments.base_preset, arguments.base_config),
                    on_terminal(arguments.program));
}

}  // namespace scalewise::tools
