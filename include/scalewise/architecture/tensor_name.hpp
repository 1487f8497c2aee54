// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

namespace detail {

/// "layer.3", "encoder.3" or "decoder.3".
inline std::string layer_name(Stack stack, std::string_view number) {
  std::string name(stack == Stack::main ? "layer" : word(architecture::stack_words, stack));
  return name.append(".").append(number);
}

}  // namespace detail

namespace architecture {

/// The name of a tensor or of an observable as a value: "layer.3.mlp_up" is mlp_up in layer 3 of the
/// main stack, "encoder.3.mlp.output" is mlp.output in layer 3 of the encoder, "head" is in neither.
struct TensorName {
  Stack stack = Stack::none;  // none: the name begins with its part
  int layer = -1;             // from 0; -1 outside the blocks
  std::string part = {};      // in no stack, * stands for the number of the layer

  /// The text before the part: "layer.3.", "encoder.3.", "encoder." or nothing.
  std::string prefix() const {
    if (stack == Stack::none || (stack == Stack::main && layer < 0)) return "";
    return detail::layer_name(stack, layer < 0 ? "" : std::to_string(layer) + ".");
  }

  friend bool operator==(const TensorName&, const TensorName&) = default;
};

}  // namespace architecture

/// The text of a name.
inline std::string to_string(const architecture::TensorName& name) {
  std::string text = name.prefix() + name.part;
  const std::size_t star = name.layer < 0 ? std::string::npos : text.find('*');
  if (star != std::string::npos) text.replace(star, 1, std::to_string(name.layer));
  return text;
}

namespace architecture {

/// The name that a text stands for. Text of another form, such as the name of a tensor of your own,
/// is a part in no stack.
inline TensorName tensor_name(std::string_view text) {
  for (const Stack stack : {Stack::main, Stack::encoder, Stack::decoder}) {
    const std::string first = detail::layer_name(stack, "");
    if (!text.starts_with(first)) continue;
    const std::string_view rest = text.substr(first.size());
    const std::size_t digits = rest.find_first_not_of("0123456789");
    int layer = -1;
    if (digits != std::string_view::npos && rest[digits] == '.') {
      std::from_chars(rest.data(), rest.data() + digits, layer);
    }
    if (layer >= 0) return {stack, layer, std::string(rest.substr(digits + 1))};
    if (stack != Stack::main) return {stack, -1, std::string(rest)};
  }
  return {Stack::none, -1, std::string(text)};
}

}  // namespace architecture

}  // namespace scalewise
