// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/extra.hpp"
#include "scalewise/dialect/classify.hpp"

namespace scalewise::dialect {

namespace detail {

/// An extra tensor under its own name, in a dialect's layout.
inline OwnerTensor owner_of_extra(const Dialect& dialect, const Tensor& tensor) {
  OwnerTensor owner;
  owner.name = tensor.name;
  owner.parts.push_back({tensor.name, {}});
  if (is_vector(tensor.group)) {
    owner.shape = {tensor.rows};
    return owner;
  }
  const bool head = tensor.group == Group::head;
  owner.transposed = !is_table(tensor.group) && (head || dialect.layout == MatrixLayout::out_in);
  owner.shape = {tensor.rows, tensor.columns};
  if (owner.transposed) std::swap(owner.shape[0], owner.shape[1]);
  return owner;
}

inline std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) {
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  }
  return text.empty() ? "a scalar" : text;
}

}  // namespace detail

/// The same for a model with tensors that its shape does not say. They go by the names of the extras.
inline Assignment classify(const Dialect& dialect, const Shape& shape,
                           const std::vector<Extra>& extras,
                           const std::vector<ModelTensor>& model) {
  std::map<std::string_view, const ModelTensor*> by_name;
  const std::size_t wrapper = detail::wrapper_size(model);
  for (const ModelTensor& tensor : model) {
    by_name.emplace(std::string_view(tensor.name).substr(wrapper), &tensor);
  }
  std::vector<OwnerTensor> owned;
  std::vector<std::string> problems;
  for (const Tensor& tensor : extra_tensors(extras, shape)) {
    OwnerTensor owner = detail::owner_of_extra(dialect, tensor);
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) {
      problems.push_back(tensor.name + ": missing");
      continue;
    }
    const ModelTensor& is = *found->second;
    by_name.erase(found);
    if (is.shape != owner.shape) {
      problems.push_back(is.name + ": it is " + detail::sizes_text(is.shape) + ", expected " +
                         detail::sizes_text(owner.shape));
      continue;
    }
    owner.name = is.name;
    owned.push_back(std::move(owner));
  }
  std::vector<ModelTensor> rest;
  for (const ModelTensor& tensor : model) {
    if (by_name.contains(std::string_view(tensor.name).substr(wrapper))) rest.push_back(tensor);
  }
  Assignment all = classify(dialect, shape, rest);
  for (OwnerTensor& owner : owned) all.tensors.push_back(std::move(owner));
  all.problems.insert(all.problems.end(), problems.begin(), problems.end());
  return all;
}

/// The same for a model with extras, which have their own names in every dialect.
inline Assignment usual_tensors(const Dialect& dialect, const Shape& shape,
                                const std::vector<Extra>& extras) {
  Assignment usual = usual_tensors(dialect, shape);
  for (const Tensor& tensor : extra_tensors(extras, shape)) {
    usual.tensors.push_back(detail::owner_of_extra(dialect, tensor));
  }
  return usual;
}

}  // namespace scalewise::dialect
