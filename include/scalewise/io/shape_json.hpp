// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

/// A shape as JSON: every size and choice by its name; what is unset is null.
inline nlohmann::ordered_json to_json(const Shape& shape) {
  nlohmann::ordered_json json;
  json["input"] = word(architecture::input_words, shape.input);
  architecture::for_each_size(shape, [&](const char* name, long value) { json[name] = value; });
  architecture::for_each_flag(shape, [&](const char* name, const auto& flag) {
    if constexpr (std::is_same_v<std::decay_t<decltype(flag)>, bool>) {
      json[name] = flag;
    } else {
      json[name] = flag ? nlohmann::ordered_json(*flag) : nlohmann::ordered_json(nullptr);
    }
  });
  json["blocks"] = word(architecture::blocks_words, shape.blocks);
  json["residual_gain"] = word(architecture::residual_gain_words, shape.residual_gain);
  json["activation"] =
      shape.activation
          ? nlohmann::ordered_json(word(architecture::activation_words, *shape.activation))
          : nlohmann::ordered_json(nullptr);
  if (shape.attention_biases != AttentionBiases::none) {
    json["attention_biases"] = word(architecture::attention_biases_words, shape.attention_biases);
  }
  if (shape.qk_norm != QkNorm::none)
    json["qk_norm"] = word(architecture::qk_norm_words, shape.qk_norm);
  return json;
}

namespace io {

/// Every key that a shape has always had. Later ones are left out where they have their default, so
/// that a version that does not know them reads all other shapes.
inline std::vector<std::string> shape_json_keys() {
  const Shape shape;
  std::vector<std::string> keys{"input", "blocks", "residual_gain", "activation"};
  architecture::for_each_size(shape, [&](const char* name, long) { keys.emplace_back(name); });
  architecture::for_each_flag(shape,
                              [&](const char* name, const auto&) { keys.emplace_back(name); });
  return keys;
}

}  // namespace io

/// A shape from JSON; keys that are absent keep their defaults.
/// Throws:   InvalidInput for an unknown key or a value of the wrong type.
inline Shape shape_from_json(const io::JsonReader& json) {
  Shape shape;
  if (json.has("input")) shape.input = json.at("input").word(architecture::input_words);
  if (json.has("blocks")) shape.blocks = json.at("blocks").word(architecture::blocks_words);
  if (json.has("residual_gain")) {
    shape.residual_gain = json.at("residual_gain").word(architecture::residual_gain_words);
  }
  if (json.has("activation") && !json.at("activation").is_null()) {
    shape.activation = json.at("activation").word(architecture::activation_words);
  }
  architecture::for_each_size(shape, [&](const char* name, long& value) {
    if (json.has(name)) value = json.at(name).integer();
  });
  architecture::for_each_flag(shape, [&](const char* name, auto& flag) {
    if (!json.has(name)) return;
    constexpr bool may_be_unset = !std::is_same_v<std::remove_reference_t<decltype(flag)>, bool>;
    if (!may_be_unset || !json.at(name).is_null()) flag = json.at(name).boolean();
  });
  if (json.has("attention_biases")) {
    shape.attention_biases = json.at("attention_biases").word(architecture::attention_biases_words);
  }
  if (json.has("qk_norm")) shape.qk_norm = json.at("qk_norm").word(architecture::qk_norm_words);
  std::vector<std::string> keys = io::shape_json_keys();
  keys.insert(keys.end(), {"attention_biases", "qk_norm"});
  json.only(keys);
  return shape;
}

}  // namespace scalewise
