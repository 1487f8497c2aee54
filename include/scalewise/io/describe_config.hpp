// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/config_json.hpp"
#include "scalewise/io/decoder_tables.hpp"
#include "scalewise/io/encoder_tables.hpp"
#include "scalewise/io/expert_tables.hpp"
#include "scalewise/io/gpt_tables.hpp"
#include "scalewise/io/model_classes.hpp"
#include "scalewise/io/model_table_reader.hpp"
#include "scalewise/io/table_codes.hpp"
#include "scalewise/io/two_stack_tables.hpp"

namespace scalewise {

namespace detail {

/// A type whose configuration has that of its language model in an object, and what of the model is left out.
/// Source:   transformers, models/gemma3/modular_gemma3.py (d903f32), Gemma3Model and Gemma3ForConditionalGeneration.
struct ConfigWrapper {
  std::string_view type;
  const char* key;
  std::string_view text_type;  // where the object does not say it
  std::string_view prefix;     // in place of "model."
  std::string_view left_out;
};

inline constexpr ConfigWrapper config_wrappers[] = {
    {"gemma3", "text_config", "gemma3_text", "model.language_model.",
     "only the language model is listed: the vision tower and its projector are left out"}};

/// Calls use() with each table.
inline void for_each_table(auto&& use) {
  for (const ModelTable& table : gpt_tables) use(table);
  for (const ModelTable& table : decoder_tables) use(table);
  for (const ModelTable& table : expert_tables) use(table);
  for (const ModelTable& table : encoder_tables) use(table);
  for (const ModelTable& table : two_stack_tables) use(table);
}

/// The table of a model type, or nullptr.
inline const ModelTable* table_of(std::string_view type) {
  const ModelTable* found = nullptr;
  for_each_table([&](const ModelTable& table) {
    if (table.type == type) found = &table;
  });
  return found;
}

/// The language model of a wrapper, with the names that it has in it.
/// `describe(config, name)`: reads the configuration of the language model
inline io::ConfigDescription describe_wrapped(const ConfigWrapper& wrapper,
                                              const ConfigReader& reader, auto&& describe) {
  const nlohmann::ordered_json* found = reader.find(wrapper.key);
  if (found == nullptr || !found->is_object())
    throw reader.error(wrapper.key, "an object, the configuration of the language model");
  for (const char* key : {"vision_config", "mm_tokens_per_image"})
    static_cast<void>(reader.find(key));
  reader.only_value("tie_word_embeddings", true);
  nlohmann::ordered_json text = *found;
  if (!text.contains("model_type")) text["model_type"] = wrapper.text_type;
  const std::string name = reader.name() + ": " + wrapper.key;
  if (text["model_type"] != wrapper.text_type)
    throw ConfigReader(text, name).error("model_type", std::string(wrapper.text_type));
  io::ConfigDescription read = describe(text, name);
  const auto rename = [&](std::string& of) {
    if (of.starts_with("model.")) of.replace(0, 6, wrapper.prefix);
  };
  for (DescribedTensor& tensor : read.model.tensors) {
    rename(tensor.name);
    rename(tensor.tied_to);
  }
  for (architecture::RoleOverride& role : read.roles) rename(role.pattern);
  note_other_class(reader, read.notes);
  reader.require_no_other_keys(std::string(wrapper.type), read.notes);
  read.notes.emplace_back(wrapper.left_out);
  return read;
}

}  // namespace detail

namespace io {

/// The tensors that a Hugging Face `config.json` describes, by their names in the code, or a base like it of
/// another width, depth or number of experts. docs/any_model.md lists the model types; of other types that have a shape the names are those of plans.
/// Source:   transformers, the modeling files of these types; the tables say which.
/// Throws:   InvalidInput as model_config(), and for a width at which a size that grows with it would not be whole.
inline ConfigDescription describe_config(const nlohmann::ordered_json& config,
                                         const std::string& name = "config.json",
                                         const Base& base = {}) {
  const detail::ConfigReader reader(config, name);
  const std::string type = reader.model_type();
  if (const detail::ModelTable* table = detail::table_of(type)) {
    ConfigDescription read = detail::ModelTableReader(*table, reader, base).describe();
    read.code = detail::code_of_config(reader);
    detail::note_other_class(reader, read.notes);
    reader.require_no_other_keys(type, read.notes);
    return read;
  }
  for (const detail::ConfigWrapper& wrapper : detail::config_wrappers) {
    if (wrapper.type != type) continue;
    return detail::describe_wrapped(wrapper, reader,
                                    [&](const nlohmann::ordered_json& text, const std::string& of) {
                                      return describe_config(text, of, base);
                                    });
  }
  if (!detail::has_shape(type)) {
    throw reader.error("model_type", "a type that docs/any_model.md lists",
                       detail::no_reader(config, type));
  }
  const ModelConfig model = model_config(config, name);
  const Shape shape = base_like(model.shape, base);
  return {describe(shape),
          {.d_model = shape.d_model, .blocks = Blocks::listed},
          {},
          model.notes,
          model.code};
}

/// The roles of its matrices, by patterns of names: for from_descriptions() with a base that is as wide as the target, where
/// nothing grows that would say them. They are those that a base of another width has.
/// Throws:   InvalidInput as describe_config().
inline std::vector<architecture::RoleOverride> roles_of_config(
    const nlohmann::ordered_json& config, const std::string& name = "config.json") {
  ConfigDescription target = describe_config(config, name);
  const ConfigDescription wider = describe_config(config, name, {2 * target.shape.d_model, 0});
  const DescribedModel model =
      detail::DescriptionReader(target.model, wider.model, target.roles, target.shape, wider.shape)
          .read(false);
  for (const Extra& tensor : model.tensors) {
    const Role role = role_of(tensor.group);
    if (architecture::is_of_experts(tensor.group)) {
      const bool router = tensor.group == Group::router;
      target.roles.push_back({tensor.name, router ? GivenRole::router : GivenRole::expert});
      continue;
    }
    if (role == Role::input) target.roles.push_back({tensor.name, GivenRole::input});
    if (role == Role::hidden) target.roles.push_back({tensor.name, GivenRole::hidden});
    if (role == Role::output) target.roles.push_back({tensor.name, GivenRole::output});
  }
  return target.roles;
}

/// The model types that have a table of tensors, or a language model that has one.
inline std::vector<std::string_view> described_types() {
  std::vector<std::string_view> types;
  detail::for_each_table([&](const detail::ModelTable& table) { types.push_back(table.type); });
  for (const detail::ConfigWrapper& wrapper : detail::config_wrappers)
    types.push_back(wrapper.type);
  return types;
}

/// Whether a configuration is of a model type that has no shape, so that a table describes it if anything does.
inline bool has_no_shape(const nlohmann::ordered_json& config, const std::string& name) {
  return !detail::has_shape(detail::ConfigReader(config, name).model_type());
}

}  // namespace io

}  // namespace scalewise
