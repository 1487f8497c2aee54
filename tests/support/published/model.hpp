// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A list of tensors as a published code base names and stores them, with the entries of a plan that
// each tensor holds. The lists are written from those code bases, not from the library; each file says
// where its names were read.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/shape.hpp"

namespace scalewise::test::published {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;

  friend bool operator==(const NamedShape&, const NamedShape&) = default;
};

/// Index ranges as begin and count. One after the other they are the entry's indices from 0.
using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;

struct Selection {
  int axis = 0;  // of the stored tensor
  Runs runs;
};

/// The part of a stored tensor that belongs to a plan's entry: along axes without a selection all of it.
struct Part {
  std::string entry;  // as "layer.0.query"
  std::vector<Selection> select;
};

struct Owner {
  NamedShape tensor;
  std::vector<Part> parts;
  bool transposed = false;  // stored [out, in], as torch::nn::Linear; false for tables and vectors
};

struct Model {
  std::string dialect;
  std::string title;
  Shape shape;
  std::vector<Owner> owners;
  std::vector<NamedShape> extra;    // parameters that a shape does not describe
  std::vector<NamedShape> buffers;  // no parameters; some files have them
  std::vector<std::pair<std::string, std::string>> aliases;  // another name, and which tensor it is
};

inline std::int64_t numbers(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

/// How many parameters a model has, those that are not in a plan and padding included.
inline std::int64_t parameters(const Model& model) {
  std::int64_t sum = 0;
  for (const Owner& owner : model.owners) sum += numbers(owner.tensor.shape);
  for (const NamedShape& tensor : model.extra) sum += numbers(tensor.shape);
  return sum;
}

/// The parameters as a list.
inline std::vector<NamedShape> listed(const Model& model) {
  std::vector<NamedShape> list;
  list.reserve(model.owners.size() + model.extra.size());
  for (const Owner& owner : model.owners) list.push_back(owner.tensor);
  list.insert(list.end(), model.extra.begin(), model.extra.end());
  return list;
}

/// The same with buffers and with every other name of a tensor, as files have them that were written
/// without a thought for who shares what.
inline std::vector<NamedShape> listed_in_full(const Model& model) {
  std::vector<NamedShape> list = listed(model);
  const std::vector<NamedShape> parameters = list;
  list.insert(list.end(), model.buffers.begin(), model.buffers.end());
  for (const auto& [alias, name] : model.aliases) {
    for (const NamedShape& tensor : parameters) {
      if (tensor.name == name) list.push_back({alias, tensor.shape});
    }
  }
  return list;
}

/// The model as files name it whose writer saved an inner module: names lose what they began with.
/// Names that begin with something else stay.
inline Model without_prefix(Model model, const std::string& prefix) {
  const auto shorten = [&](std::string& name) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  };
  for (Owner& owner : model.owners) shorten(owner.tensor.name);
  for (NamedShape& tensor : model.extra) shorten(tensor.name);
  for (NamedShape& tensor : model.buffers) shorten(tensor.name);
  for (auto& [alias, name] : model.aliases) {
    shorten(alias);
    shorten(name);
  }
  model.title += ", without " + prefix;
  return model;
}

}  // namespace scalewise::test::published
