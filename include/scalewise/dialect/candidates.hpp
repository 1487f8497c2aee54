// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/dialect/owner_tensor.hpp"
#include "scalewise/dialect/pattern.hpp"

namespace scalewise::dialect::detail {

/// A tensor that a model of some shape may have: its owner, or another name of one.
struct Candidate {
  OwnerTensor tensor;
  std::vector<std::int64_t> flat;  // its shape without axes of size 1 and of patches
  std::string alias_of;            // entry; empty: an owner
  std::size_t pattern = 0;         // line of the dialect; those of extras follow them
  std::pair<Stack, int> layer = {Stack::none, -1};  // none outside the blocks, and of slabs
  Group group = Group::query;
  int padded_axis = -1;  // may be longer than the vocabulary
};

/// Tables with one row per token, position or bucket, which are stored as a plan has them.
inline bool is_table(Group group) {
  return group == Group::token_embedding || group == Group::position_embedding ||
         group == Group::segment_embedding || group == Group::relative_position;
}

/// A shape with the axes of an image model: of batches before tables and the class token, of colours and
/// sides of a square patch. Three colours are usual, and else one; other patches stay one axis.
inline std::vector<std::int64_t> image_axes(Group group, std::vector<std::int64_t> shape) {
  if (group == Group::class_token) return {1, 1, shape[0]};
  if (group == Group::position_embedding) return {1, shape[0], shape[1]};
  if (group != Group::patch_embedding) return shape;
  for (const std::int64_t colours : {3, 1}) {
    std::int64_t side = 1;
    while (side < (1L << 15) && colours * side * side < shape[1]) ++side;
    if (colours * side * side == shape[1]) return {shape[0], colours, side, side};
  }
  return shape;
}

/// All that a model of a shape may have under a dialect, line by line.
class Candidates {
 public:
  Candidates(const Dialect& dialect, const Shape& shape, const std::vector<Extra>& extras)
      : dialect_(dialect), shape_(shape) {
    for (Tensor& tensor : tensors(shape)) add_entry(std::move(tensor));
    for (std::size_t line = 0; line < dialect.patterns.size(); ++line) add(line);
    for (std::size_t i = 0; i < extras.size(); ++i) {
      for (Tensor& tensor : architecture::extra_tensors({extras[i]}, shape)) {
        const Tensor& entry = add_entry(std::move(tensor));
        Candidate candidate = whole({entry.name, entry.name}, {&entry});
        candidate.pattern = dialect.patterns.size() + i;
        candidate.tensor.name = entry.name;
        candidate.alias_of.clear();
        candidate.padded_axis = -1;
        all_.push_back(std::move(candidate));
      }
    }
  }

  const std::vector<Candidate>& all() const { return all_; }
  const std::map<std::string, Tensor>& entries() const { return entries_; }

  /// Whether groups of key heads are so many that they are not listed.
  bool has_too_many_groups() const {
    return shape_.kv_heads > most_groups / (std::max)(shape_.depth, 1L);
  }

 private:
  using Tensors = std::vector<const Tensor*>;

  /// In all layers together; the largest published models have some ten thousand.
  static constexpr long most_groups = 1L << 20;

  const Tensor& add_entry(Tensor tensor) {
    const std::string name = tensor.name;
    return entries_.emplace(name, std::move(tensor)).first->second;
  }

  void add(std::size_t line) {
    const TensorPattern& pattern = dialect_.patterns[line];
    const std::vector<std::string_view> words = words_of(pattern.entries);
    const bool layered = placeholder(pattern.entries).size > 0;
    const bool named = placeholder(pattern.name).size > 0;
    if (layered && !named) return add_slab(line, words);
    const long layers = layered ? (std::max)(shape_.depth, shape_.encoder_depth) : 1;
    for (long layer = 0; layer < layers; ++layer) {
      const Tensors found = entries_of(words, layer);
      if (found.empty()) continue;
      Candidate candidate = whole(pattern, found);
      candidate.pattern = line;
      candidate.tensor.name = filled(pattern.name, layered ? layer : shape_.depth);
      if (layered) candidate.layer = {found.front()->stack, found.front()->layer};
      all_.push_back(std::move(candidate));
    }
  }

  /// Layers along axis 0.
  void add_slab(std::size_t line, const std::vector<std::string_view>& words) {
    Candidate slab;
    for (long layer = 0; layer < shape_.depth; ++layer) {
      const Tensors found = entries_of(words, layer);
      if (found.empty()) return;
      Candidate one = whole(dialect_.patterns[line], found);
      for (OwnedPart& part : one.tensor.parts) {
        for (AxisRuns& axis : part.select) ++axis.axis;
        part.select.insert(part.select.begin(), {0, {{layer, 1}}});
        slab.tensor.parts.push_back(std::move(part));
      }
      slab.tensor.shape = std::move(one.tensor.shape);
      slab.tensor.transposed = one.tensor.transposed;
    }
    slab.tensor.shape.insert(slab.tensor.shape.begin(), shape_.depth);
    slab.flat = slab.tensor.shape;
    slab.tensor.name = dialect_.patterns[line].name;
    slab.pattern = line;
    all_.push_back(std::move(slab));
  }

  /// Those of the words that the shape has; the head of a tied model is its token embedding.
  Tensors entries_of(const std::vector<std::string_view>& words, long layer) const {
    Tensors found;
    for (std::string_view word : words) {
      const bool excluded = word.starts_with('!');
      const auto at = entries_.find(filled(word.substr(excluded ? 1 : 0), layer));
      if (excluded && at != entries_.end()) return {};
      if (!excluded && at != entries_.end()) found.push_back(&at->second);
    }
    if (found.empty() && words.size() == 1 && words.front() == "head") {
      const auto tied = entries_.find("token_embedding");
      if (tied != entries_.end()) found.push_back(&tied->second);
    }
    return found;
  }

  Candidate whole(const TensorPattern& pattern, const Tensors& found) const {
    const Tensor& first = *found.front();
    Candidate candidate;
    candidate.group = first.group;
    OwnerTensor& tensor = candidate.tensor;
    const bool vector = architecture::is_vector(first.group);
    const bool head = first.group == Group::head;
    tensor.transposed =
        !vector && !is_table(first.group) && (head || dialect_.layout == MatrixLayout::out_in);
    const bool tied = words_of(pattern.entries).front() == "head" && !head;
    if (tied || pattern.packing == Packing::alias) candidate.alias_of = first.name;

    const int axis = vector || tensor.transposed || is_table(first.group) ? 0 : 1;
    std::vector<std::int64_t> sizes;  // along the axis
    for (const Tensor* part : found) sizes.push_back(axis_size(*part));
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) total += size;
    const std::int64_t offset = pattern.packing == Packing::after_two ? 2 : 0;
    if (vector) {
      tensor.shape = {total};
    } else {
      const std::int64_t other = is_table(first.group) ? first.columns : first.rows;
      tensor.shape = {total + offset, other};
      if (axis == 1) std::swap(tensor.shape[0], tensor.shape[1]);
    }
    candidate.flat = tensor.shape;
    if (pattern.packing == Packing::image) tensor.shape = image_axes(first.group, tensor.shape);
    std::int64_t begin = offset;
    for (std::size_t i = 0; i < found.size(); ++i) {
      OwnedPart part{found[i]->name, {}};
      if (found.size() > 1 || offset > 0) {
        part.select.push_back({axis, runs(pattern.packing, begin, sizes, i, total)});
      }
      tensor.parts.push_back(std::move(part));
      begin += sizes[i];
    }
    if (offset > 0) tensor.padding.push_back({axis, {{0, offset}}});
    if (first.group == Group::token_embedding || head || first.group == Group::head_bias) {
      candidate.padded_axis = axis;
    }
    return candidate;
  }

  /// The length along the axis that parts of one tensor share.
  static std::int64_t axis_size(const Tensor& tensor) {
    return architecture::is_vector(tensor.group) || is_table(tensor.group) ? tensor.rows
                                                                           : tensor.columns;
  }

  /// Part i of several. Those of key groups lie in as many runs as there are key heads.
  std::vector<IndexRun> runs(Packing packing, std::int64_t begin,
                             const std::vector<std::int64_t>& sizes, std::size_t i,
                             std::int64_t total) const {
    if (packing == Packing::alternating) {
      return {{static_cast<std::int64_t>(i), sizes[i], static_cast<std::int64_t>(sizes.size())}};
    }
    const std::int64_t groups = shape_.kv_heads;
    const bool by_head = packing == Packing::heads && groups == shape_.heads;
    const bool grouped = packing == Packing::key_groups || by_head;
    if (!grouped || has_too_many_groups()) return {{begin, sizes[i]}};
    std::int64_t before = 0;
    for (std::size_t j = 0; j < i; ++j) before += sizes[j] / groups;
    std::vector<IndexRun> all;
    all.reserve(static_cast<std::size_t>(groups));
    for (std::int64_t group = 0; group < groups; ++group) {
      all.push_back({group * (total / groups) + before, sizes[i] / groups});
    }
    return all;
  }

  const Dialect& dialect_;
  const Shape& shape_;
  std::map<std::string, Tensor> entries_;
  std::vector<Candidate> all_;
};

}  // namespace scalewise::dialect::detail
