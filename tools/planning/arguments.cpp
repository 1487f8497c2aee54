// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/arguments.hpp"

#include <utility>

#include "frame/progress.hpp"
#include "planning/rule_options.hpp"
#include "planning/set_option.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/same_growth.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/description_json.hpp"
#include "scalewise/io/dialect_json.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/published_configs.hpp"
#include "scalewise/policy/muon_names.hpp"

namespace scalewise::tools {

namespace {

/// A model that is given by its tensors, and its base.
struct DescribedSizes {
  io::ConfigDescription target, base;
};

io::ConfigDescription described_file(const std::string& path) {
  return {read_description_file(path), {.blocks = Blocks::listed}, {}, {}};
}

/// A configuration, and what messages call it.
struct NamedConfig {
  nlohmann::ordered_json json;
  std::string name;
};

/// That of a file, or of a preset that no shape describes; empty where there is neither.
std::optional<NamedConfig> config_of(const std::string& preset, const std::string& path) {
  if (!path.empty()) return NamedConfig{io::read_config_file(path), path};
  const io::PublishedConfig* published = io::published_config(preset);
  if (published == nullptr) return {};
  return NamedConfig{io::parse_json(published->json, preset), preset};
}

/// That of --config or --preset, whose type has no shape.
DescribedSizes described_config(const PlanArguments& a, const NamedConfig& config) {
  DescribedSizes sizes{io::describe_config(config.json, config.name), {}};
  if (const auto base = config_of(a.base_preset, a.base_config)) {
    sizes.base = io::describe_config(base->json, base->name);
  } else if (a.base != Base{}) {
    sizes.base = io::describe_config(config.json, config.name, a.base);
  } else {
    const bool preset = !a.base_preset.empty();
    throw InvalidInput(preset ? "--base-preset" : "--base-width", preset ? a.base_preset : "none",
                       "--base-width, --base-depth, --base-experts or --base-config",
                       "what grows from the base to the target says the role of each tensor");
  }
  if (sizes.base.shape.d_model == sizes.target.shape.d_model)  // what grows says no role
    sizes.target.roles = io::roles_of_config(config.json, config.name);
  for (const std::string& note : sizes.target.notes) frame::say_once(a.program + ": note: " + note);
  return sizes;
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
  if (config && io::has_no_shape(config->json, config->name)) return described_config(a, *config);
  if (!a.role.empty()) throw InvalidInput("--role", a.role.front(), "--model as well");
  return {};
}

/// Throws:   InvalidInput where --set says another size than the tensors of a description.
void require_described_sizes(const std::string& whose, const Shape& described, const Shape& set) {
  constexpr std::pair<const char*, long Shape::*> sizes[] = {{"d_model", &Shape::d_model},
                                                             {"depth", &Shape::depth}};
  for (const auto& [name, size] : sizes) {
    if (described.*size == Shape{}.*size || described.*size == set.*size) continue;
    const std::string field = whose + name;
    throw InvalidInput("--set", field + "=" + std::to_string(set.*size),
                       field + "=" + std::to_string(described.*size) + ", as the tensors have",
                       "give the config.json or the description of a model of that size");
  }
}

/// The shapes of a description and of its base, with what --set says.
/// Throws:   InvalidInput where that is another size than the tensors'.
std::pair<Shape, Shape> with_set(const std::vector<std::string>& set, const Shape& target,
                                 const Shape& base) {
  Shape shape = target;
  static_cast<void>(set_target(set, shape));
  require_described_sizes("", target, shape);
  std::optional<Shape> small = base;
  set_base(set, small, "");
  require_described_sizes("base.", base, *small);
  return {shape, *small};
}

GivenModel model_of(const std::string& program, const NamedConfig& config) {
  io::ModelConfig model = io::model_config(config.json, config.name);
  for (const std::string& note : model.notes) frame::say_once(program + ": note: " + note);
  return {std::move(model.shape), model.code, model.initializer_std,
          std::move(model.initializer_key)};
}

std::optional<GivenModel> model_of(const std::string& program, const std::string& preset,
                                   const std::string& config) {
  if (io::published_config(preset) != nullptr) {
    throw InvalidInput("preset", preset, "a preset with a shape", "this one is a list of tensors");
  }
  if (!preset.empty()) return GivenModel{preset_shape(preset)};
  if (!config.empty()) return model_of_config(program, config);
  return {};
}

}  // namespace

void add_shape_options(frame::Options& options, PlanArguments& a) {
  options.add("--preset", a.preset, "published shape, see plan --list-presets");
  options.add("--config", a.config, "Hugging Face config.json").reads().excludes("--preset");
  options.add("--base-preset", a.base_preset, "published shape that rates were tuned on");
  options.add("--base-config", a.base_config, "config.json of the model that rates were tuned on")
      .reads()
      .excludes("--base-preset");
  options
      .add("--base-width", a.base.width,
           "width of a base that is like the target otherwise (0: the target's)")
      .excludes("--base-preset")
      .excludes("--base-config");
  options
      .add("--base-depth", a.base.depth,
           "depth of a base that is like the target otherwise (0: the target's)")
      .excludes("--base-preset")
      .excludes("--base-config");
  options
      .add("--base-experts", a.base.experts,
           "number of experts of a base that is like the target otherwise (0: the target's)")
      .excludes("--base-preset")
      .excludes("--base-config");
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
  options.add("--single-rate", a.single_rate, "one learning rate for all, as multipliers instead")
      .excludes("--fold");
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
  return model_of(program, {io::read_config_file(path), path});
}

namespace {

DescribedModel described_model(const PlanArguments& a, const DescribedSizes& sizes) {
  std::vector<architecture::RoleOverride> roles = sizes.target.roles;
  for (const std::string& text : a.role) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      throw InvalidInput("--role", text, "PATTERN=ROLE", "such as '*.router.weight=output'");
    }
    roles.push_back({text.substr(0, equals),
                     value_of(architecture::given_role_words, "--role", text.substr(equals + 1))});
  }
  const auto [shape, base] = with_set(a.set, sizes.target.shape, sizes.base.shape);
  DescribedModel model =
      from_descriptions(sizes.target.model, sizes.base.model, roles, shape, base);
  for (const std::string& note : model.notes) frame::say_once(a.program + ": note: " + note);
  // A size that --set gives for one of the two alone was not used: then it is what the tensors have.
  static_cast<void>(with_set(a.set, model.shape, model.base));
  if (!a.check_model.empty()) {
    architecture::require_same_growth(sizes.target.model, sizes.base.model,
                                      read_description_file(a.check_model));
  }
  return model;
}

}  // namespace

AskedModel asked_model(const PlanArguments& a) {
  const std::optional<NamedConfig> config = config_of(a.preset, a.config);
  if (const auto sizes = described_sizes(a, config)) return {described_model(a, *sizes), {}};
  return {{}, config ? model_of(a.program, *config) : given_model(a)};
}

std::vector<Plan> make_plans(const PlanArguments& arguments, const DescribedModel& model) {
  GivenModel target{model.shape};
  target.tensors = model.tensors;
  PlanArguments rest = arguments;
  rest.base = {};  // is described
  return make_plans(rest, std::move(target), GivenModel{model.base}, [&](const std::string& line) {
    frame::say_once(arguments.program + ": " + line);
  });
}

std::optional<GivenModel> given_model(const PlanArguments& arguments) {
  return model_of(arguments.program, arguments.preset, arguments.config);
}

std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target) {
  return make_plans(
      arguments, std::move(target),
      model_of(arguments.program, arguments.base_preset, arguments.base_config),
      [&](const std::string& line) { frame::say_once(arguments.program + ": " + line); });
}

}  // namespace scalewise::tools
