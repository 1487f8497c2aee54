// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::architecture {

/// Sets one field of a shape from text, as in "d_ff=11008" or "tied_head=true".
/// Returns false when the shape has no such field; blocks and residual_gain are the rules' to set.
/// Throws:   InvalidInput for a value of the wrong kind.
inline bool set_field(Shape& shape, std::string_view key, std::string_view value) {
  const std::string field(key);
  bool found =
      key == "input" || key == "activation" || key == "attention_biases" || key == "qk_norm";
  if (key == "input") shape.input = value_of(input_words, field, value);
  if (key == "activation") shape.activation = value_of(activation_words, field, value);
  if (key == "attention_biases")
    shape.attention_biases = value_of(attention_biases_words, field, value);
  if (key == "qk_norm") shape.qk_norm = value_of(qk_norm_words, field, value);
  for_each_size(shape, [&](std::string_view name, long& size) {
    if (name != key) return;
    found = true;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, size);
    if (error != std::errc{} || stop != end) {
      throw InvalidInput(field, std::string(value), "a whole number");
    }
    const bool may_be_zero = name == "encoder_depth" || name == "segments" ||
                             name == "relative_buckets" || name == "iterations";
    if (size < (may_be_zero ? 0 : 1)) {
      throw InvalidInput(field, std::string(value),
                         may_be_zero ? "0 or a positive integer" : "a positive integer");
    }
  });
  for_each_flag(shape, [&](std::string_view name, auto& flag) {
    if (name != key) return;
    found = true;
    if (value != "true" && value != "false") {
      throw InvalidInput(field, std::string(value), "true or false");
    }
    flag = value == "true";
  });
  return found;
}

/// The names that set_field knows.
inline std::vector<std::string> shape_fields() {
  Shape shape;
  std::vector<std::string> names{"input", "activation", "attention_biases", "qk_norm"};
  for_each_size(shape, [&](const char* name, long) { names.emplace_back(name); });
  for_each_flag(shape, [&](const char* name, const auto&) { names.emplace_back(name); });
  return names;
}

}  // namespace scalewise::architecture
