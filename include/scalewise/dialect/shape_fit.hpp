// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/candidates.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise::dialect::detail {

/// A shape with as many axes as expected, where the others are of size 1, or those of a patch.
inline std::vector<std::int64_t> of_rank(std::vector<std::int64_t> shape, std::size_t rank,
                                         Group group) {
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  while (shape.size() > rank && group == Group::patch_embedding) {
    const std::int64_t last = shape.back();
    shape.pop_back();
    if (last < 1 || shape.back() < 1 || shape.back() > architecture::largest_size / last) return {};
    shape.back() *= last;
  }
  if (shape.empty() && rank == 1) shape = {1};
  return shape;
}

/// Rows beyond the vocabulary that make `got` the expected shape: a multiple of 64, and less than 1024 more. 0: none.
inline std::int64_t padding_rows(const Candidate& candidate, std::vector<std::int64_t> got) {
  const std::vector<std::int64_t>& expected = candidate.flat;
  if (candidate.padded_axis < 0 || got.size() != expected.size()) return 0;
  const auto axis = static_cast<std::size_t>(candidate.padded_axis);
  const std::int64_t rows = got[axis];
  const std::int64_t more = rows - expected[axis];
  got[axis] = expected[axis];
  return got == expected && more > 0 && more < 1024 && rows % 64 == 0 ? more : 0;
}

/// The size of a shape that an axis of a tensor follows, as --set spells it; empty where it is none alone.
inline std::string_view size_of_axis(Group group, const std::string& entry, bool outputs) {
  const bool vector = architecture::is_vector(group);
  const auto is = [&](std::string_view part) { return entry.find(part) != std::string::npos; };
  switch (group) {
    case Group::token_embedding:
      return outputs ? "d_model" : "vocab";
    case Group::position_embedding:
      return outputs ? "d_model" : "context";
    case Group::segment_embedding:
      return outputs ? "d_model" : "segments";
    case Group::patch_embedding:
      return outputs ? "d_model" : "patch_dim";
    case Group::query:
    case Group::key:
    case Group::value:
      return outputs ? "head_dim" : "d_model";
    case Group::attention_output:
      return outputs ? "d_model" : "head_dim";
    case Group::mlp_up:
    case Group::mlp_gate:
      return outputs ? "d_ff" : "d_model";
    case Group::mlp_down:
      return outputs ? "d_model" : "d_ff";
    case Group::head:
      return outputs ? "vocab" : "d_model";
    case Group::head_bias:
      return "vocab";
    case Group::hidden_bias:
      return is("query") || is("key") || is("value") ? "head_dim"
             : is("mlp_up") || is("mlp_gate")        ? "d_ff"
                                                     : "d_model";
    default:
      return vector && (is("query_norm") || is("key_norm")) ? "head_dim" : "";
  }
}

inline long size_named(const Shape& shape, std::string_view name) {
  long size = 0;
  architecture::for_each_size(shape, [&](const char* field, long value) {
    if (name == field) size = value;
  });
  return size;
}

/// The size to set for a tensor whose one axis differs; nothing where no whole number fits.
inline std::string size_hint(const Candidate& candidate, const Shape& shape,
                             const std::vector<std::int64_t>& got) {
  const std::vector<std::int64_t>& expected = candidate.flat;
  if (got.size() != expected.size()) return "";
  std::size_t axis = got.size();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    if (axis < got.size()) return "";
    axis = i;
  }
  const bool slab = got.size() == (architecture::is_vector(candidate.group) ? 2 : 3);
  if (axis == got.size() || got[axis] < 1 || (slab && axis == 0)) return "";
  const bool first = axis + 2 == got.size() || got.size() == 1;
  const bool table = is_table(candidate.group);
  const bool outputs = table ? !first : candidate.tensor.transposed == first;
  std::string_view field =
      size_of_axis(candidate.group, candidate.tensor.parts.front().entry, outputs);
  if (field == "vocab" && shape.input == Input::patch) field = "classes";
  const long size = size_named(shape, field);
  if (size == 0 || expected[axis] % size != 0) return "";
  const std::int64_t times = expected[axis] / size;
  if (got[axis] % times != 0 || field == "d_model") return "";
  const std::string name(field), fits = std::to_string(got[axis] / times);
  std::string set = "--set " + name + "=" + fits;
  const bool keys = candidate.group == Group::key || candidate.group == Group::value;
  if (keys && outputs && candidate.tensor.parts.size() == 1 && got[axis] % size == 0)
    set += " or kv_heads=" + std::to_string(got[axis] / size);
  return " (hint: " + name + " = " + std::to_string(size) + ", but " + fits + " here: " + set + ")";
}

/// Whether `actual` is the shape that a candidate expects; the complaint, or nothing. Rows beyond the
/// vocabulary become padding of `tensor`.
inline std::string fit(const Candidate& candidate, const Shape& shape,
                       const std::vector<std::int64_t>& actual, OwnerTensor& tensor) {
  const std::vector<std::int64_t>& expected = candidate.flat;
  const std::vector<std::int64_t> got = of_rank(actual, expected.size(), candidate.group);
  if (got == expected) return "";
  if (const std::int64_t more = padding_rows(candidate, got); more > 0) {
    const std::int64_t rows = expected[static_cast<std::size_t>(candidate.padded_axis)];
    for (OwnedPart& part : tensor.parts) {
      part.select.push_back({candidate.padded_axis, {{0, rows}}});
    }
    tensor.padding.push_back({candidate.padded_axis, {{rows, more}}});
    return "";
  }
  std::vector<std::int64_t> turned = got;
  if (turned.size() >= 2) std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  const bool transposed = turned == expected || padding_rows(candidate, turned) > 0;
  return messages::sizes_text(actual) + ": expected " +
         messages::sizes_text(candidate.tensor.shape) +
         (transposed ? " (hint: it is transposed)" : size_hint(candidate, shape, got));
}

}  // namespace scalewise::dialect::detail
