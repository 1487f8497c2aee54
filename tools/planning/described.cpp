// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/described.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "planning/set_option.hpp"
#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/architecture/presets.hpp"
#include "scalewise/architecture/shape_fields.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/describe_config.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/io/published_configs.hpp"

namespace scalewise::tools {

namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

/// The names and values of all fields.
Texts fields_of(const Shape& shape) {
  Texts texts;
  architecture::for_each_field(shape, [&](std::string_view name, const auto& field) {
    texts.emplace_back(name, architecture::field_text(field));
  });
  return texts;
}

/// Whether a list can be told a field that its tensors do not say.
bool is_told(const std::string& field) {
  const auto is_named = [&](const auto& size) { return size.name == field; };
  return field == "depth" || field == "experts_per_token" || field == "tied_head" ||
         std::any_of(detail::named_sizes.begin(), detail::named_sizes.end(), is_named);
}

/// Throws:   InvalidInput where --set says something else than a description.
void require_described(const std::string& whose, const Shape& described, const Shape& set) {
  const Texts plain = fields_of({}), has = fields_of(described), asked = fields_of(set);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto& [name, value] = has[i];
    const std::string setting = whose + name + "=" + asked[i].second;
    if (value == asked[i].second) continue;
    if (value != plain[i].second) {
      throw InvalidInput("--set", setting, whose + name + "=" + value + ", as the tensors have",
                         "give the config.json or the description of such a model");
    }
  }
}

/// Throws:   InvalidInput for a size with a name in one of the two models alone: it says by how much sides grow.
void require_in_both(const Shape& target, const Shape& base) {
  for (const detail::NamedSize& size : detail::named_sizes) {
    const long in_target = target.*size.field, in_base = base.*size.field;
    if ((in_target > 0) == (in_base > 0) || size.field == &Shape::d_model) continue;
    const std::string name(size.name), missing = in_base > 0 ? name : "base." + name;
    throw InvalidInput("--set",
                       in_base > 0 ? "base." + name + "=" + std::to_string(in_base)
                                   : name + "=" + std::to_string(in_target),
                       "--set " + missing + " as well", "sides of tensors grow as it does");
  }
}

/// Throws:   InvalidInput for a field that no list can be told.
void require_told(const std::vector<std::string>& settings) {
  const std::vector<std::string> fields = architecture::shape_fields();
  for (const std::string& setting : settings) {
    const std::size_t begin = is_of_base(setting) ? 5 : 0;
    const std::string field = setting.substr(begin, setting.find('=') - begin);
    if (is_told(field) || std::find(fields.begin(), fields.end(), field) == fields.end()) continue;
    throw InvalidInput("--set", setting, "a size that a list of tensors can have",
                       "its tensors and their names say all else");
  }
}

/// The shapes of a description and of its base, with what --set says.
/// Throws:   InvalidInput where that is something else than the tensors say.
std::pair<Shape, Shape> with_set(const std::vector<std::string>& set, const Shape& target,
                                 const Shape& base) {
  require_told(set);
  Shape shape = target;
  static_cast<void>(set_target(set, shape));
  require_described("", target, shape);
  std::optional<Shape> small = base;
  set_base(set, small, "");
  require_described("base.", base, *small);
  require_in_both(shape, *small);
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

CodedModel described_model(const PlanArguments& a, const DescribedSizes& sizes, const Say& say) {
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
  CodedModel model{from_descriptions(sizes.target.model, sizes.base.model, roles, shape, base),
                   sizes.target.code, sizes.base.code};
  for (const std::string& note : model.notes) say("note: " + note);
  // A size that --set gives for one of the two alone was not used: then it is what the tensors have.
  static_cast<void>(with_set(a.set, model.shape, model.base));
  return model;
}

std::vector<Plan> make_plans(const PlanArguments& arguments, const CodedModel& model,
                             const Say& say) {
  GivenModel target{model.shape, model.code};
  target.tensors = model.tensors;
  PlanArguments rest = arguments;
  rest.base = {};  // is described
  return make_plans(rest, std::move(target), GivenModel{model.base, model.base_code}, say);
}

}  // namespace scalewise::tools
