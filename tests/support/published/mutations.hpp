// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Lists with one mistake each. Halves of a fused tensor that changed places are not among them: names
// and shapes are the same, and only values could tell.

#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/published/model.hpp"

namespace scalewise::test::published {

enum class Mistake {
  renamed,         // a letter is missing
  transposed,      // a matrix with its two sizes exchanged
  dropped,         // a tensor is missing
  duplicated,      // a name stands there twice
  unknown,         // a tensor that no dialect has
  layer_missing,   // one in the middle; slabs of all layers are one too short
  layer_too_many,  // one at the end; slabs of all layers are one too long
  wrong_vocab,     // an embedding with fewer rows than tokens
  wrong_alias,     // another name for a tensor, with another shape
  rank_three,      // a matrix split into three axes, with as many numbers
  empty_axis,      // a size of 0
  negative_axis,
  huge_axis,  // more numbers than fit into 64 bits
};

struct Mutation {
  Mistake mistake;
  std::vector<NamedShape> list;
  std::vector<std::string> one_of;  // what the error must contain one of
};

namespace detail {

/// The name without a letter of its middle.
inline std::string misspelt(std::string name) {
  std::size_t at = name.size() / 2;
  while (at < name.size() && std::isalpha(static_cast<unsigned char>(name[at])) == 0) ++at;
  name.erase(at < name.size() ? at : 0, 1);
  return name;
}

/// The first number of a name, which is that of its layer, raised by one.
inline std::string next_layer(const std::string& name) {
  const std::size_t begin = name.find_first_of("0123456789");
  const std::size_t end = std::min(name.find_first_not_of("0123456789", begin), name.size());
  const std::string number = std::to_string(std::stol(name.substr(begin, end - begin)) + 1);
  return name.substr(0, begin) + number + name.substr(end);
}

/// "layer.1", "encoder.0" and so on; nothing outside the layers.
inline std::string layer_of(const std::string& entry) {
  const std::size_t number = entry.find_first_of("0123456789");
  const std::size_t dot = entry.find('.', number);
  return number == std::string::npos || dot == std::string::npos ? "" : entry.substr(0, dot);
}

/// Whether one tensor holds several layers.
inline bool is_slab(const Owner& owner) {
  return layer_of(owner.parts.front().entry) != layer_of(owner.parts.back().entry);
}

inline std::vector<std::string> names_of(const Owner& owner) {
  std::vector<std::string> names{owner.tensor.name};
  for (const Part& part : owner.parts) names.push_back(part.entry);
  return names;
}

class Mutations {
 public:
  explicit Mutations(const Model& model) : model_(model), list_(listed(model)) {}

  std::vector<Mutation> all() {
    for (std::size_t at = 0; at < model_.owners.size(); ++at) one_tensor(at);
    for (const Owner& owner : model_.owners) {
      if (owner.parts.front().entry == "token_embedding") vocabulary(owner);
    }
    add(Mistake::unknown, list_, {"extra.unheard_of"}).push_back({"extra.unheard_of", {3, 5}});
    if (is_slab(model_.owners[2])) {
      slabs(-1, Mistake::layer_missing);
      slabs(1, Mistake::layer_too_many);
    } else {
      layers();
    }
    for (const auto& [alias, name] : model_.aliases) {
      for (const NamedShape& tensor : list_) {
        if (tensor.name != name) continue;
        NamedShape wrong{alias, tensor.shape};
        wrong.shape.front() += 1;
        add(Mistake::wrong_alias, list_, {alias}).push_back(wrong);
      }
    }
    return std::move(mutations_);
  }

 private:
  std::vector<NamedShape>& add(Mistake mistake, std::vector<NamedShape> list,
                               std::vector<std::string> one_of) {
    mutations_.push_back({mistake, std::move(list), std::move(one_of)});
    return mutations_.back().list;
  }

  void one_tensor(std::size_t at) {
    const Owner& owner = model_.owners[at];
    const std::string& name = owner.tensor.name;
    const std::vector<std::int64_t>& shape = owner.tensor.shape;
    const std::string wrong = misspelt(name);
    add(Mistake::renamed, list_, {wrong})[at].name = wrong;
    std::vector<NamedShape>& shorter = add(Mistake::dropped, list_, names_of(owner));
    shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(at));
    add(Mistake::duplicated, list_, {name}).push_back(owner.tensor);
    const bool matrix = shape.size() == 2 && shape[0] > 1 && shape[1] > 1;
    if (matrix && shape[0] != shape[1]) {
      std::swap(reshaped(Mistake::transposed, at)[0], mutations_.back().list[at].shape[1]);
    }
    if (matrix && shape[1] % 2 == 0) {
      reshaped(Mistake::rank_three, at) = {shape[0], shape[1] / 2, 2};
    }
    reshaped(Mistake::empty_axis, at).back() = 0;
    reshaped(Mistake::negative_axis, at).back() *= -1;
    reshaped(Mistake::huge_axis, at).assign(shape.size(), std::int64_t{1} << 62);
  }

  std::vector<std::int64_t>& reshaped(Mistake mistake, std::size_t at) {
    return add(mistake, list_, {list_[at].name})[at].shape;
  }

  void vocabulary(const Owner& owner) {
    const std::int64_t rows = model_.shape.vocab - 1;
    for (NamedShape& tensor : add(Mistake::wrong_vocab, list_, {owner.tensor.name})) {
      if (tensor.name == owner.tensor.name) tensor.shape[0] = rows;
    }
  }

  /// The last stack without its second layer, and with one more.
  void layers() {
    const std::string stack = model_.shape.encoder_depth > 0 ? "decoder." : "layer.";
    const std::string second = stack + "1";
    const std::string last = stack + std::to_string(model_.shape.depth - 1);
    std::vector<NamedShape> missing;
    std::vector<NamedShape> more = list_;
    std::vector<std::string> gone{second};
    std::vector<std::string> added;
    for (const NamedShape& tensor : list_) {
      const std::string layer = layer_of_tensor(tensor.name);
      if (layer == second) {
        gone.push_back(tensor.name);
      } else {
        missing.push_back(tensor);
      }
      if (layer == last) {
        more.push_back({next_layer(tensor.name), tensor.shape});
        added.push_back(more.back().name);
      }
    }
    add(Mistake::layer_missing, missing, gone);
    add(Mistake::layer_too_many, more, added);
  }

  std::string layer_of_tensor(const std::string& name) const {
    for (const Owner& owner : model_.owners) {
      if (owner.tensor.name == name) return layer_of(owner.parts.front().entry);
    }
    return "";
  }

  void slabs(std::int64_t change, Mistake mistake) {
    std::vector<NamedShape> list = list_;
    std::vector<std::string> names;
    for (std::size_t at = 0; at < model_.owners.size(); ++at) {
      if (!is_slab(model_.owners[at])) continue;
      list[at].shape[0] += change;
      names.push_back(list[at].name);
    }
    add(mistake, list, names);
  }

  const Model& model_;
  std::vector<NamedShape> list_;
  std::vector<Mutation> mutations_;
};

}  // namespace detail

/// Every mistake at every tensor where it can be made. Large for a large model.
inline std::vector<Mutation> mutations(const Model& model) {
  return detail::Mutations(model).all();
}

}  // namespace scalewise::test::published
