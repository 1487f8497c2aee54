// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whether a published list and a shape say the same.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/tensor.hpp"
#include "support/published/model.hpp"

namespace scalewise::test::published {

namespace detail {

/// Where a part stands along an axis: what it selects there, or all.
inline Runs runs_along(const NamedShape& tensor, const Part& part, std::size_t axis) {
  for (const Selection& selection : part.select) {
    if (static_cast<std::size_t>(selection.axis) == axis) return selection.runs;
  }
  return {{0, tensor.shape[axis]}};
}

/// Sizes of what a part owns, without axes of size 1.
inline std::vector<std::int64_t> sizes_of(const NamedShape& tensor, const Part& part) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    std::int64_t size = 0;
    for (const auto& run : runs_along(tensor, part, axis)) size += run.second;
    if (size != 1) sizes.push_back(size);
  }
  return sizes;
}

/// Sizes that the list should have for this tensor of a plan.
inline std::vector<std::int64_t> sizes_of(const Tensor& tensor, bool transposed) {
  std::vector<std::int64_t> sizes{tensor.rows, tensor.columns};
  if (transposed) std::swap(sizes[0], sizes[1]);
  std::erase(sizes, 1);
  return sizes;
}

inline bool meet(const std::pair<std::int64_t, std::int64_t>& a,
                 const std::pair<std::int64_t, std::int64_t>& b) {
  return a.first < b.first + b.second && b.first < a.first + a.second;
}

/// Whether two parts of a tensor have a number in common: they meet along every axis.
inline bool meet(const NamedShape& tensor, const Part& a, const Part& b) {
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const Runs of_a = runs_along(tensor, a, axis);
    const Runs of_b = runs_along(tensor, b, axis);
    const bool here = std::any_of(of_a.begin(), of_a.end(), [&](const auto& run) {
      return std::any_of(of_b.begin(), of_b.end(),
                         [&](const auto& other) { return meet(run, other); });
    });
    if (!here) return false;
  }
  return true;
}

/// A selection of an axis that is not there, or that leaves it, or that has an index twice.
inline bool is_wrong(const NamedShape& tensor, const Selection& selection) {
  const auto axis = static_cast<std::size_t>(selection.axis);
  if (axis >= tensor.shape.size() || selection.runs.empty()) return true;
  for (std::size_t at = 0; at < selection.runs.size(); ++at) {
    const auto& [begin, count] = selection.runs[at];
    if (begin < 0 || count < 1 || begin + count > tensor.shape[axis]) return true;
    for (std::size_t before = 0; before < at; ++before) {
      if (meet(selection.runs[before], selection.runs[at])) return true;
    }
  }
  return false;
}

inline std::string faults_of(const Owner& owner, const std::map<std::string, Tensor>& entries) {
  std::string text;
  const NamedShape& tensor = owner.tensor;
  for (std::size_t at = 0; at < owner.parts.size(); ++at) {
    const Part& part = owner.parts[at];
    const auto entry = entries.find(part.entry);
    const bool wrong = std::any_of(part.select.begin(), part.select.end(),
                                   [&](const auto& select) { return is_wrong(tensor, select); });
    if (wrong) {
      text += part.entry + " selects what is not there\n";
    } else if (entry == entries.end()) {
      text += tensor.name + " holds " + part.entry + ", which is not an entry\n";
    } else {
      std::vector<std::int64_t> sizes = sizes_of(tensor, part);
      if (sizes.size() == 4) sizes = {sizes[0], sizes[1] * sizes[2] * sizes[3]};  // a convolution
      if (sizes != sizes_of(entry->second, owner.transposed)) {
        text += tensor.name + " has another shape than " + part.entry + "\n";
      }
    }
    for (std::size_t before = 0; before < at; ++before) {
      if (meet(tensor, owner.parts[before], part)) {
        text += owner.parts[before].entry + " and " + part.entry + " meet\n";
      }
    }
  }
  return text;
}

}  // namespace detail

/// Numbers of the listed tensors that no entry owns; negative where two own the same.
inline std::int64_t unowned(const Model& model) {
  std::int64_t sum = 0;
  for (const Owner& owner : model.owners) {
    sum += numbers(owner.tensor.shape);
    for (const Part& part : owner.parts) sum -= numbers(detail::sizes_of(owner.tensor, part));
  }
  return sum;
}

/// The problems of a list, one line each; empty if there are none.
inline std::string faults(const Model& model) {
  std::string text;
  std::map<std::string, Tensor> entries;
  for (const Tensor& tensor : tensors(resolved(model.shape))) entries[tensor.name] = tensor;
  std::map<std::string, int> owned;
  std::set<std::string> names;
  const auto once = [&](const std::string& name) {
    if (!names.insert(name).second) text += name + " is listed twice\n";
  };
  for (const Owner& owner : model.owners) {
    once(owner.tensor.name);
    text += detail::faults_of(owner, entries);
    for (const Part& part : owner.parts) ++owned[part.entry];
  }
  for (const NamedShape& tensor : model.extra) once(tensor.name);
  for (const NamedShape& tensor : model.buffers) once(tensor.name);
  for (const auto& [alias, name] : model.aliases) {
    const auto is_it = [&name = name](const NamedShape& tensor) { return tensor.name == name; };
    const std::vector<NamedShape> parameters = listed(model);
    if (std::none_of(parameters.begin(), parameters.end(), is_it)) {
      text += alias + " is another name of nothing\n";
    }
    once(alias);
  }
  for (const auto& [name, tensor] : entries) {
    if (owned[name] != 1) text += name + " is owned " + std::to_string(owned[name]) + " times\n";
  }
  return text;
}

}  // namespace scalewise::test::published
