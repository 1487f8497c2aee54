// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/name.hpp"
#include "scalewise/messages/nearest.hpp"
#include "scalewise/scaling/scaling.hpp"

namespace scalewise {

/// A tensor that a model has but its shape does not describe, such as a gain of your own: it follows the
/// rule's row for a group.
/// Shapes:   rows and columns are products of whole numbers and sizes of the shape, such as "head_dim",
///           "2*d_ff" or "d_model/4"; a gain or a bias has no columns.
/// `*` in the name is the number of the layer: there is one tensor in each. In a model with an encoder
/// and a decoder the name of a tensor in the blocks says which.
struct Extra {
  std::string name;
  Group group = Group::norm_gain;
  std::string rows = "d_model";
  std::string columns = "1";
  std::string fan_in =
      "";  // of the bias of a matrix: that one's; of copies of a matrix side by side: that of one
  bool own_values = false;             // starts as the model itself does, whatever the rule draws
  std::optional<bool> in_layers = {};  // without, a name with `*` is, and else its group says so

  friend bool operator==(const Extra&, const Extra&) = default;
};

namespace architecture {

/// Whether the tensors of an extra stand in the layers, whose factors of the depth they have then.
inline bool is_in_layers(const Extra& extra) {
  return extra.in_layers.value_or(extra.name.find('*') != std::string::npos ||
                                  is_in_layers(extra.group));
}

}  // namespace architecture

namespace detail {

/// A size that an extra tensor names.
struct NamedSize {
  std::string_view name;
  const Symbol* symbol;
  long Shape::*field;
};

inline constexpr auto named_sizes = std::to_array<NamedSize>({
    {"d_model", &symbols::d_model, &Shape::d_model},
    {"d_ff", &symbols::d_ff, &Shape::d_ff},
    {"heads", &symbols::heads, &Shape::heads},
    {"kv_heads", &symbols::kv_heads, &Shape::kv_heads},
    {"head_dim", &symbols::head_dim, &Shape::head_dim},
    {"vocab", &symbols::vocab, &Shape::vocab},
    {"context", &symbols::context, &Shape::context},
    {"patch_dim", &symbols::patch_dim, &Shape::patch_dim},
    {"classes", &symbols::classes, &Shape::classes},
    {"experts", &symbols::experts, &Shape::experts},
    {"expert_ff", &symbols::expert_ff, &Shape::expert_ff},
});

/// One side of an extra tensor: its length and how it scales.
struct ExtraSide {
  long length = 1;
  Scaling scaling = 1;
};

/// Reads the tensors of one Extra.
class ExtraReader {
 public:
  ExtraReader(const Extra& extra, const Shape& shape) : extra_(extra), shape_(shape) {}

  std::vector<Tensor> tensors() const {
    const std::size_t star = extra_.name.find('*');
    if (extra_.name.empty()) refuse("name", "(empty)", "the name of a tensor");
    messages::require_name("extra", extra_.name);
    if (star != extra_.name.rfind('*')) {
      refuse("name", messages::printable(extra_.name),
             "one * at most, for the number of the layer");
    }
    Tensor tensor;
    tensor.group = extra_.group;
    tensor.own_values = extra_.own_values;
    tensor.in_layers = architecture::is_in_layers(extra_);
    const ExtraSide rows = side("rows", extra_.rows);
    const ExtraSide columns = side("columns", extra_.columns);
    tensor.rows = rows.length;
    tensor.columns = columns.length;
    const bool matrix = !architecture::is_vector(extra_.group);
    if (!matrix && columns.length != 1) {
      refuse("columns", extra_.columns,
             "1: a " + std::string(to_string(extra_.group)) + " is a vector");
    }
    tensor.fan_in = fan_in(rows);
    tensor.fan_out = matrix ? columns.scaling : rows.scaling;
    if (star == std::string::npos) {
      tensor.name = extra_.name;
      if (tensor.in_layers && shape_.encoder_depth > 0) tensor.stack = stack();
      return {tensor};
    }
    tensor.stack = stack();
    const long layers = tensor.stack == Stack::encoder ? shape_.encoder_depth : shape_.depth;
    std::vector<Tensor> all;
    for (tensor.layer = 0; tensor.layer < layers; ++tensor.layer) {
      tensor.name = to_string(architecture::TensorName{Stack::none, tensor.layer, extra_.name});
      all.push_back(tensor);
    }
    return all;
  }

 private:
  [[noreturn]] void refuse(const std::string& field, const std::string& value,
                           const std::string& expectation, const std::string& hint = {}) const {
    throw InvalidInput("extra " + messages::printable(extra_.name) + ", " + field, value,
                       expectation, hint);
  }

  Stack stack() const {
    if (shape_.encoder_depth == 0) return Stack::main;
    const bool encoder = extra_.name.find("encoder") != std::string::npos;
    const bool decoder = extra_.name.find("decoder") != std::string::npos;
    if (encoder != decoder) return encoder ? Stack::encoder : Stack::decoder;
    refuse("name", messages::printable(extra_.name), "one with encoder or decoder in it",
           "the shape has layers in both");
  }

  /// As that of the group's own tensors: one-hot inputs and gains have 1.
  Scaling fan_in(const ExtraSide& rows) const {
    const Group group = extra_.group;
    if (!extra_.fan_in.empty()) {
      if (architecture::is_matrix_bias(group) || architecture::reads_width(group))
        return side("fan_in", extra_.fan_in).scaling;
      refuse("fan_in", extra_.fan_in, "none",
             "only the bias of a matrix has that of another tensor");
    }
    if (group == Group::hidden_bias)
      refuse("fan_in", "(none)", "the inputs of its matrix, such as d_model");
    if (group == Group::head_bias) return symbols::d_model;
    if (group == Group::patch_bias) return symbols::patch_dim;
    return group == Group::patch_embedding || architecture::reads_width(group) ? rows.scaling
                                                                               : Scaling(1);
  }

  ExtraSide side(const std::string& field, const std::string& text) const {
    long times = 1;
    long over = 1;
    ExtraSide side;
    bool divide = false;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = (std::min)(text.find_first_of("*/", begin), text.size());
      const auto [number, scaling] = factor(field, text.substr(begin, end - begin));
      long& product = divide ? over : times;
      if (product > architecture::largest_size / number) refuse(field, text, "a size up to 2^30");
      product *= number;
      side.scaling = divide ? side.scaling / scaling : side.scaling * scaling;
      divide = end < text.size() && text[end] == '/';
      begin = end + 1;
    }
    if (times % over != 0) {
      refuse(field, text,
             "a whole number; it is " + std::to_string(times) + "/" + std::to_string(over) +
                 " in this shape");
    }
    side.length = times / over;
    return side;
  }

  std::pair<long, Scaling> factor(const std::string& field, const std::string& word) const {
    messages::Nearest nearest(word);
    for (const NamedSize& size : named_sizes) {
      nearest.offer(size.name);
      if (size.name != word) continue;
      const long length = shape_.*size.field;
      if (length > 0) return {length, *size.symbol};
      refuse(field, word, "a size that the shape has");
    }
    long number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc{} && end == word.data() + word.size() && number > 0 &&
        number <= architecture::largest_size) {
      return {number, Scaling(static_cast<double>(number))};
    }
    refuse(field, word.empty() ? "(empty)" : messages::printable(word),
           "a whole number or a size of the shape", nearest.hint());
  }

  const Extra& extra_;
  const Shape& shape_;
};

}  // namespace detail

namespace architecture {

/// The tensors of extras in a model, in order.
/// Requires: a resolved shape.
/// Throws:   InvalidInput naming the extra and its field: for a name that require_name() refuses, with two
///           `*` or of no stack, a side that is no such product or no whole number, columns of a vector, a hidden_bias without fan_in.
inline std::vector<Tensor> extra_tensors(const std::vector<Extra>& extras, const Shape& shape) {
  std::vector<Tensor> all;
  for (const Extra& extra : extras) {
    for (Tensor& tensor : detail::ExtraReader(extra, shape).tensors()) {
      all.push_back(std::move(tensor));
    }
  }
  return all;
}

/// An extra from text: NAME:GROUP:ROWS, NAME:GROUP:ROWS,COLUMNS or NAME:hidden_bias:ROWS:FAN_IN.
/// Throws:   InvalidInput for other text.
inline Extra extra_from_text(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() < 3 || parts.size() > 4) {
    throw InvalidInput("extra", text.empty() ? "(empty)" : messages::printable(text),
                       "NAME:GROUP:ROWS or NAME:GROUP:ROWS,COLUMNS",
                       "such as layer.*.query_gain:norm_gain:head_dim");
  }
  Extra extra{parts[0], group_named("extra " + messages::printable(parts[0]) + ", group", parts[1]),
              parts[2], "1", parts.size() == 4 ? parts[3] : ""};
  if (const std::size_t comma = parts[2].find(','); comma != std::string::npos) {
    extra.rows = parts[2].substr(0, comma);
    extra.columns = parts[2].substr(comma + 1);
  }
  return extra;
}

}  // namespace architecture

}  // namespace scalewise
