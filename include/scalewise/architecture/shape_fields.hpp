// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::architecture {

/// A field as text; "unset" where it is.
inline std::string field_text(long size) { return std::to_string(size); }
inline std::string field_text(bool flag) { return flag ? "true" : "false"; }
template <class Enum>
requires std::is_enum_v<Enum> std::string field_text(Enum value) {
  return std::string(word(words_of(value), value));
}
template <class Value>
std::string field_text(const std::optional<Value>& value) {
  return value ? field_text(*value) : "unset";
}

/// Fields of every model of blocks in sequence; any other field says how a model differs from that.
inline constexpr auto plain_fields =
    std::to_array<std::string_view>({"input",          "d_model",    "depth",
                                     "encoder_depth",  "heads",      "kv_heads",
                                     "head_dim",       "d_ff",       "context",
                                     "vocab",          "patch_dim",  "classes",
                                     "segments",       "iterations", "tied_head",
                                     "head_bias",      "gated_mlp",  "biases",
                                     "norm_gain",      "norm_bias",  "learned_positions",
                                     "embedding_norm", "final_norm", "blocks",
                                     "residual_gain",  "activation"});

/// Requires that a shape has nothing that a model or theory does not know: fields that are neither plain nor `known` have
/// their defaults.
/// Throws:   InvalidInput naming the field, with the hint.
inline void require_plain(const Shape& shape, std::initializer_list<std::string_view> known,
                          const std::string& hint) {
  std::vector<std::string> defaults;
  const Shape plain;
  for_each_field(
      plain, [&](std::string_view, const auto& field) { defaults.push_back(field_text(field)); });
  std::size_t at = 0;
  for_each_field(shape, [&](std::string_view name, const auto& field) {
    const std::string& expected = defaults[at++];
    const bool is_known = std::count(plain_fields.begin(), plain_fields.end(), name) > 0 ||
                          std::count(known.begin(), known.end(), name) > 0;
    if (is_known || field_text(field) == expected) return;
    throw InvalidInput(std::string(name), field_text(field), expected, hint);
  });
}

/// Sets a field from text.
/// Throws:   InvalidInput for a value of the wrong kind.
inline void set_value(long& size, const std::string& field, std::string_view text) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, size);
  if (error != std::errc{} || stop != end) {
    throw InvalidInput(field, std::string(text), "a whole number");
  }
  if (size < (may_be_zero(field) ? 0 : 1)) {
    throw InvalidInput(field, std::string(text),
                       may_be_zero(field) ? "0 or a positive integer" : "a positive integer");
  }
}
inline void set_value(bool& flag, const std::string& field, std::string_view text) {
  if (text != "true" && text != "false") {
    throw InvalidInput(field, std::string(text), "true or false");
  }
  flag = text == "true";
}
template <class Enum>
requires std::is_enum_v<Enum>
void set_value(Enum& word, const std::string& field, std::string_view text) {
  word = value_of(words_of(word), field, text);
}
template <class Value>
void set_value(std::optional<Value>& value, const std::string& field, std::string_view text) {
  set_value(value.emplace(), field, text);
}

/// False for what rules set: the kind of the blocks, and of the gains on their branches.
constexpr bool is_users(std::string_view field) {
  return field != "blocks" && field != "residual_gain";
}

/// Sets one field of a shape from text, as in "d_ff=11008" or "tied_head=true".
/// Returns false when the shape has no such field, or it is for rules to set.
/// Throws:   InvalidInput for a value of the wrong kind.
inline bool set_field(Shape& shape, std::string_view key, std::string_view value) {
  bool found = false;
  for_each_field(shape, [&](std::string_view name, auto& field) {
    if (name != key || !is_users(name)) return;
    found = true;
    set_value(field, std::string(key), value);
  });
  return found;
}

/// The names that set_field knows.
inline std::vector<std::string> shape_fields() {
  std::vector<std::string> names;
  const Shape shape;
  for_each_field(shape, [&](std::string_view name, const auto&) {
    if (is_users(name)) names.emplace_back(name);
  });
  return names;
}

}  // namespace scalewise::architecture
