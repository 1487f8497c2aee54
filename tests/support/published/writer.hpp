// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/published/model.hpp"

namespace scalewise::test::published {

/// An entry of a plan, and where along the outputs of a stored matrix it stands.
struct Slice {
  std::string entry;
  Runs runs;
};

/// Entries of these sizes, one after the other.
inline std::vector<Slice> in_turn(const std::vector<std::pair<std::string, long>>& sizes) {
  std::vector<Slice> slices;
  long begin = 0;
  for (const auto& [entry, size] : sizes) {
    slices.push_back({entry, {{begin, size}}});
    begin += size;
  }
  return slices;
}

/// All heads' queries, then all keys, then all values.
inline std::vector<Slice> query_key_value(const Shape& s, const std::string& kind = "") {
  return in_turn({{kind + "query", s.heads * s.head_dim},
                  {kind + "key", s.kv_heads * s.head_dim},
                  {kind + "value", s.kv_heads * s.head_dim}});
}

/// For each key head: the heads that query it, the key, the value. Without grouped queries that is
/// query, key and value of one head after the other.
inline std::vector<Slice> query_key_value_by_group(const Shape& s) {
  std::vector<Slice> slices{{"query", {}}, {"key", {}}, {"value", {}}};
  const long queries = s.heads / s.kv_heads * s.head_dim;
  for (long group = 0; group < s.kv_heads; ++group) {
    const long begin = group * (queries + 2 * s.head_dim);
    slices[0].runs.emplace_back(begin, queries);
    slices[1].runs.emplace_back(begin + queries, s.head_dim);
    slices[2].runs.emplace_back(begin + queries + s.head_dim, s.head_dim);
  }
  return slices;
}

/// How a code base spells and stores.
struct Style {
  bool out_in = true;  // matrices are [out, in]
  std::string weight = ".weight";
  std::string bias = ".bias";
  std::string gain = ".weight";  // of a norm
  std::string shift = ".bias";
};

/// Adds tensors to a model: names begin with one prefix, the entries that they hold with another.
class Writer {
 public:
  Writer(Model& model, std::string names, std::string entries, Style style = {})
      : model_(model),
        names_(std::move(names)),
        entries_(std::move(entries)),
        style_(std::move(style)) {}

  /// Rows and columns as a plan has them, with all of an entry.
  void table(const std::string& name, const std::string& entry, long rows, long columns) const {
    add(name, {rows, columns}, {{entries_ + entry, {}}}, false);
  }

  void vector(const std::string& name, const std::string& entry, long size) const {
    add(name, {size}, {{entries_ + entry, {}}}, false);
  }

  void vector(const std::string& name, const std::vector<Slice>& slices) const {
    add(name, {size_of(slices)}, parts(slices, 0), false);
  }

  /// A matrix of a layer, in the style's order of axes.
  void matrix(const std::string& name, const std::string& entry, long in, long out) const {
    matrix(name, {{entry, {{0, out}}}}, in);
  }

  void matrix(const std::string& name, const std::vector<Slice>& slices, long in) const {
    const long out = size_of(slices);
    if (style_.out_in) {
      add(name, {out, in}, parts(slices, 0), true);
    } else {
      add(name, {in, out}, parts(slices, 1), false);
    }
  }

  /// A matrix, with its bias if there is one.
  void dense(const std::string& name, const std::string& entry, long in, long out,
             bool bias) const {
    dense(name, {{entry, {{0, out}}}}, in, bias);
  }

  void dense(const std::string& name, const std::vector<Slice>& slices, long in, bool bias) const {
    matrix(name + style_.weight, slices, in);
    if (bias) vector(name + style_.bias, biases(slices));
  }

  /// A gain and a bias of the width, as far as the shape has them.
  void norm(const std::string& name, const std::string& entry) const {
    const Shape& s = model_.shape;
    if (s.norm_gain) vector(name + style_.gain, entry + "_gain", s.d_model);
    if (s.norm_bias) vector(name + style_.shift, entry + "_bias", s.d_model);
  }

  void buffer(const std::string& name, std::vector<std::int64_t> shape) const {
    model_.buffers.push_back({names_ + name, std::move(shape)});
  }

  /// Of the biases of these outputs.
  static std::vector<Slice> biases(std::vector<Slice> slices) {
    for (Slice& slice : slices) slice.entry += "_bias";
    return slices;
  }

 private:
  static long size_of(const std::vector<Slice>& slices) {
    long size = 0;
    for (const Slice& slice : slices) {
      for (const auto& [begin, count] : slice.runs) size += count;
    }
    return size;
  }

  std::vector<Part> parts(const std::vector<Slice>& slices, int axis) const {
    if (slices.size() == 1) return {{entries_ + slices.front().entry, {}}};
    std::vector<Part> result;
    result.reserve(slices.size());
    for (const Slice& slice : slices) {
      result.push_back({entries_ + slice.entry, {{axis, slice.runs}}});
    }
    return result;
  }

  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<Part> parts,
           bool transposed) const {
    model_.owners.push_back({{names_ + name, std::move(shape)}, std::move(parts), transposed});
  }

  Model& model_;
  std::string names_;
  std::string entries_;
  Style style_;
};

/// A list without tensors yet.
inline Model empty_model(std::string dialect, std::string title, const Shape& shape) {
  Model model;
  model.dialect = std::move(dialect);
  model.title = std::move(title);
  model.shape = resolved(shape);
  return model;
}

/// "layers.", 3, "." as "layers.3.".
inline std::string numbered(const std::string& before, long number,
                            const std::string& after = ".") {
  return before + std::to_string(number) + after;
}

}  // namespace scalewise::test::published
