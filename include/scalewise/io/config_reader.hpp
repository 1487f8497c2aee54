// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/io/config_keys.hpp"
#include "scalewise/io/parse_json.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::detail {

/// Reads the keys of one `config.json`, and knows which it has not read. A key that is null counts as absent;
/// "object.key" is a key of an object in it.
class ConfigReader {
 public:
  using Json = nlohmann::ordered_json;

  ConfigReader(const Json& config, std::string name) : config_(config), name_(std::move(name)) {
    if (!config_.is_object()) {
      throw InvalidInput(name_, value_text(config_), "a JSON object");
    }
  }

  /// The name of the file in errors.
  const std::string& name() const { return name_; }

  InvalidInput error(const char* key, const std::string& expectation,
                     const std::string& hint = {}) const {
    const Json* found = value_at(key);
    return InvalidInput(name_ + ": " + key, found == nullptr ? "(missing)" : value_text(*found),
                        expectation, hint);
  }

  const Json* find(const char* key) const {
    read_.insert(key);
    const Json* found = value_at(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }

  /// A required size, or one whose default is given; a default of 0 leaves it open.
  long size(const char* key, std::optional<long> otherwise = {}) const {
    constexpr const char* expectation = "a whole number from 1 to 2^30";
    const Json* value = find(key);
    if (value == nullptr && !otherwise) throw error(key, expectation);
    return value == nullptr ? *otherwise : size_of(*value, key, expectation);
  }

  /// A required size, or a flag: 1 or 0.
  long size_or_flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr || value->is_number()) return size(key);
    if (!value->is_boolean()) throw error(key, "true, false or a whole number");
    return value->get<bool>() ? 1 : 0;
  }

  /// Rows of a table of positions whose first two no token uses.
  long positions_after_two(const char* key) const {
    const long positions = size(key);
    if (positions > architecture::largest_size - 2) throw error(key, "at most 2^30 - 2");
    return positions + 2;
  }

  long size_or(const char* key, long otherwise) const { return size(key, otherwise); }

  long layers(const char* key, std::optional<long> otherwise = {}) const {
    const long count = size(key, otherwise);
    if (count > architecture::most_layers)
      throw error(key, "at most " + std::to_string(architecture::most_layers));
    return count;
  }

  /// The number of heads, when together they are as wide as the model.
  long heads(const char* key, const char* width_key, const char* hint = "") const {
    const long count = size(key);
    const long width = size(width_key);
    if (width % count != 0) {
      throw error(key, "a divisor of " + std::string(width_key) + " = " + std::to_string(width),
                  hint);
    }
    return count;
  }

  void read_kv_heads(Shape& shape, long otherwise) const {
    shape.kv_heads = size("num_key_value_heads", otherwise);
    if (shape.heads % shape.kv_heads == 0) return;
    throw error("num_key_value_heads",
                "a divisor of num_attention_heads = " + std::to_string(shape.heads),
                find("num_key_value_heads") == nullptr
                    ? "it is " + std::to_string(shape.kv_heads) + " when it is missing"
                    : "");
  }

  void same(const char* key, const char* other_key, long value, const char* hint) const {
    if (size(key) == value) return;
    throw error(key, std::string(other_key) + " = " + std::to_string(value), hint);
  }

  long product(const char* key, long a, long b) const {
    if (b > (architecture::largest_size - 1) / a) {
      throw error(key, "a smaller number", "a size that follows from it would reach 2^30");
    }
    return a * b;
  }

  /// A positive factor.
  double factor(const char* key, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    const double number = value->is_number() ? value->get<double>() : 0;
    if (!(number > 0 && number < 1e30)) throw error(key, "a positive number");
    return number;
  }

  /// One size for both axes of an image, or an array of two.
  std::pair<long, long> sides(const char* key, long otherwise) const {
    const Json* value = find(key);
    if (value == nullptr || !value->is_array()) {
      const long side = size_or(key, otherwise);
      return {side, side};
    }
    constexpr const char* expectation = "a whole number from 1 to 2^30, or two of them";
    if (value->size() != 2) throw error(key, expectation);
    return {size_of((*value)[0], key, expectation), size_of((*value)[1], key, expectation)};
  }

  bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) throw error(key, "true or false");
    return value->get<bool>();
  }

  /// A flag that the shape has no place for, so that its default is the one value possible.
  void only(
      const char* key, bool value,
      const char* hint =
          "a shape cannot tell such a model: try inspect --describe, and plan --model") const {
    if (flag(key, value) == value) return;
    throw error(key, value ? "true" : "false", hint);
  }

  /// A key whose one value possible is this; one that is missing has it.
  void only_value(const char* key, const Json& value) const {
    const Json* given = find(key);
    if (given != nullptr && *given != value)
      throw error(key, value.dump(), "the table of this model's tensors is for that value");
  }

  /// Whether a key, an array, has a number.
  bool lists(const char* key, long element) const {
    const Json* array = find(key);
    if (array == nullptr) return false;
    if (!array->is_array()) throw error(key, "an array of numbers");
    return std::find(array->begin(), array->end(), element) != array->end();
  }

  /// Refuses keys that no reader looked at and whose names say that they change the model; others become notes.
  void require_no_other_keys(const std::string& type, std::vector<std::string>& notes) const {
    require_no_other_keys(config_, "", type, notes);
  }

  std::string text(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) throw error(key, "a string");
    return value->get<std::string>();
  }

  /// The name of an activation, in T5 perhaps after "gated-"; the forms of GELU count as one.
  Activation activation(const char* key, const std::string& otherwise) const {
    std::string name = text(key, otherwise);
    if (name.starts_with("gated-")) name.erase(0, 6);
    if (name == "relu") return Activation::relu;
    if (name == "silu" || name == "swish") return Activation::silu;
    if (name == "gelu" || name.starts_with("gelu_")) return Activation::gelu;
    throw error(key, "relu, gelu or silu", "a shape knows no other activation");
  }

  long classes() const {
    const Json* labels = find("id2label");
    if (labels == nullptr) return size_or("num_labels", 2);
    if (!labels->is_object() || labels->empty()) {
      throw error("id2label", "an object with one key for each class");
    }
    return static_cast<long>(labels->size());
  }

  /// Sizes that most encoders and some decoders give under the same keys.
  Shape hidden_sizes(const char* d_ff) const {
    Shape shape;
    shape.d_model = size("hidden_size");
    shape.depth = layers("num_hidden_layers");
    shape.heads = heads("num_attention_heads", "hidden_size");
    shape.d_ff = size(d_ff);
    return shape;
  }

  /// Empty where it is missing or no string.
  std::string model_type() const {
    const Json* value = find("model_type");
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

  bool has(const char* key) const {
    read_.insert(key);
    return value_at(key) != nullptr;
  }

 private:
  const Json* value_at(const std::string& key) const {
    const auto found = config_.find(key);
    if (found != config_.end()) return &*found;
    const std::size_t dot = key.find('.');
    const auto object = config_.find(key.substr(0, dot));
    if (dot == std::string::npos || object == config_.end() || !object->is_object()) return nullptr;
    const auto inner = object->find(key.substr(dot + 1));
    return inner == object->end() ? nullptr : &*inner;
  }

  /// Looks at the keys of an object, whose whole names begin with `prefix`.
  void require_no_other_keys(const Json& object, const std::string& prefix, const std::string& type,
                             std::vector<std::string>& notes) const {
    for (const auto& [key, value] : object.items()) {
      const std::string path = prefix + key;
      if (read_.contains(path)) continue;
      const auto below = read_.lower_bound(path + ".");
      if (value.is_object() && below != read_.end() && below->starts_with(path + ".") &&
          !is_harmless_key(key)) {
        require_no_other_keys(value, path + ".", type, notes);
        continue;
      }
      switch (unread_key(key, value)) {
        case UnreadKey::harmless:
          break;
        case UnreadKey::unknown:
          notes.push_back(name_ + ": " + messages::printable(path) + ": not known of " + type +
                          ", and taken to change nothing");
          break;
        case UnreadKey::telling:
          throw InvalidInput(
              name_ + ": " + messages::printable(path), value_text(value),
              "no key that may change a model of type " + type +
                  " and that this version does not know",
              "if it changes nothing, take it out of a copy of the file; if it does, "
              "give --preset and --set, with --extra for tensors");
      }
    }
  }

  /// A ratio may be written as 4.0.
  long size_of(const Json& value, const char* key, const char* expectation) const {
    if (value.is_number_float() && std::string_view(key).ends_with("ratio")) {
      const auto ratio = value.get<double>();
      if (ratio >= 1 && ratio <= architecture::largest_size && ratio == std::floor(ratio))
        return static_cast<long>(ratio);
    }
    if (!value.is_number_integer()) throw error(key, expectation);
    const auto number = value.get<std::int64_t>();  // negative when it does not fit
    if (number < 1 || number > architecture::largest_size) throw error(key, expectation);
    return static_cast<long>(number);
  }

  const Json& config_;
  std::string name_;
  mutable std::set<std::string, std::less<>> read_;
};

}  // namespace scalewise::detail
