// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/described.hpp"

#include <cstddef>
#include <utility>

#include "planning/set_option.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/published_configs.hpp"

namespace scalewise::tools {

namespace {

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

}  // namespace

std::optional<NamedConfig> config_of_preset(const std::string& preset) {
  const io::PublishedConfig* published = io::published_config(preset);
  if (published == nullptr) return {};
  return NamedConfig{io::parse_json(published->json, preset), preset};
}

std::optional<GivenModel> model_of_preset(const std::string& preset) {
  if (io::published_config(preset) != nullptr) {
    throw InvalidInput("preset", preset, "a preset with a shape", "this one is a list of tensors");
  }
  if (preset.empty()) return {};
  return GivenModel{preset_shape(preset)};
}

bool has_no_shape(const NamedConfig& config) { return io::has_no_shape(config.json, config.name); }

GivenModel given_config(const NamedConfig& config, const Say& say) {
  io::ModelConfig model = io::model_config(config.json, config.name);
  for (const std::string& note : model.notes) say("note: " + note);
  return {std::move(model.shape), model.code, model.initializer_std,
          std::move(model.initializer_key)};
}

DescribedSizes described_config(const PlanArguments& a, const NamedConfig& config,
                                const std::optional<NamedConfig>& base, const Say& say) {
  DescribedSizes sizes{io::describe_config(config.json, config.name), {}};
  if (base) {
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
  for (const std::string& note : sizes.target.notes) say("note: " + note);
  return sizes;
}

DescribedModel described_model(const PlanArguments& a, const DescribedSizes& sizes,
                               const Say& say) {
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
  for (const std::string& note : model.notes) say("note: " + note);
  // A size that --set gives for one of the two alone was not used: then it is what the tensors have.
  static_cast<void>(with_set(a.set, model.shape, model.base));
  return model;
}

std::vector<Plan> make_plans(const PlanArguments& arguments, const DescribedModel& model,
                             const Say& say) {
  GivenModel target{model.shape};
  target.tensors = model.tensors;
  PlanArguments rest = arguments;
  rest.base = {};  // is described
  return make_plans(rest, std::move(target), GivenModel{model.base}, say);
}

}  // namespace scalewise::tools
