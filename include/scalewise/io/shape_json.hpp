// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

namespace io {

/// The keys that every file has. Later ones are left out where they have their default, so that a version that does
/// not know them reads all other shapes, and files from before them are read.
inline constexpr auto shape_json_keys = std::to_array<std::string_view>(
    {"input",     "d_model",           "depth",       "encoder_depth",    "heads",
     "kv_heads",  "head_dim",          "d_ff",        "context",          "vocab",
     "patch_dim", "classes",           "segments",    "relative_buckets", "iterations",
     "tied_head", "head_bias",         "gated_mlp",   "biases",           "norm_gain",
     "norm_bias", "learned_positions", "class_token", "embedding_norm",   "final_norm",
     "blocks",    "residual_gain",     "activation"});

template <class Field>
nlohmann::ordered_json field_json(const Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    return word(architecture::words_of(field), field);
  } else {
    return field;
  }
}
template <class Field>
nlohmann::ordered_json field_json(const std::optional<Field>& field) {
  return field ? field_json(*field) : nlohmann::ordered_json(nullptr);
}

inline void read_field(const JsonReader& json, long& size) { size = json.integer(); }
inline void read_field(const JsonReader& json, bool& flag) { flag = json.boolean(); }
template <class Enum>
requires std::is_enum_v<Enum>
void read_field(const JsonReader& json, Enum& value) {
  value = json.word(architecture::words_of(value));
}
template <class Field>
void read_field(const JsonReader& json, std::optional<Field>& field) {
  if (!json.is_null()) read_field(json, field.emplace());
}

}  // namespace io

/// A shape as JSON: every size and choice by its name; what is unset is null.
inline nlohmann::ordered_json to_json(const Shape& shape) {
  const auto& always = io::shape_json_keys;
  nlohmann::ordered_json json, defaults;
  const Shape untouched;
  architecture::for_each_field(untouched, [&](const char* name, const auto& field) {
    defaults[name] = io::field_json(field);
  });
  architecture::for_each_field(shape, [&](const char* name, const auto& field) {
    const nlohmann::ordered_json value = io::field_json(field);
    const bool is_later = std::find(always.begin(), always.end(), name) == always.end();
    if (!is_later || value != defaults[name]) json[name] = value;
  });
  return json;
}

/// A shape from JSON; keys that are absent keep their defaults.
/// Throws:   InvalidInput for an unknown key or a value of the wrong type.
inline Shape shape_from_json(const io::JsonReader& json) {
  Shape shape;
  std::vector<std::string> keys;
  architecture::for_each_field(shape, [&](const char* name, auto& field) {
    keys.emplace_back(name);
    if (json.has(name)) io::read_field(json.at(name), field);
  });
  json.only(keys);
  return shape;
}

}  // namespace scalewise
