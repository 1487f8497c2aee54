// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Lists with one mistake each. Halves of a fused tensor that changed places are not among them: names
// and shapes are the same. Those of query, key and value show in gradients (tests/python/python_torch.py), those
// of gate and up do not matter to a plan (tests/policy/gated_mlp_test.cpp).

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
  swapped,    // query and key, where queries share keys
};

struct Mutation {
  Mistake mistake;
  std::vector<NamedShape> list;
  std::vector<std::string> one_of;  // what the error must contain one of
  std::string says;                 // and what it must say
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
    add(Mistake::unknown, unknown_text, list_, {"extra.unheard_of"})
        .push_back({"extra.unheard_of", {3, 5}});
    for (const Owner& owner : model_.owners) query_for_key(owner);
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
        add(Mistake::wrong_alias, "it is another name of", list_, {alias}).push_back(wrong);
      }
    }
    return std::move(mutations_);
  }

 private:
  static constexpr const char* unknown_text = ": is none of the tensors of ";
  static constexpr const char* size_text = "]: expected [";

  std::vector<NamedShape>& add(Mistake mistake, const char* says, std::vector<NamedShape> list,
                               std::vector<std::string> one_of) {
    mutations_.push_back({mistake, std::move(list), std::move(one_of), says});
    return mutations_.back().list;
  }

  void one_tensor(std::size_t at) {
    const Owner& owner = model_.owners[at];
    const std::string& name = owner.tensor.name;
    const std::vector<std::int64_t>& shape = owner.tensor.shape;
    const std::string wrong = misspelt(name);
    add(Mistake::renamed, unknown_text, list_, {wrong})[at].name = wrong;
    std::vector<NamedShape>& shorter = add(Mistake::dropped, ": missing", list_, names_of(owner));
    shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(at));
    add(Mistake::duplicated, ": given twice", list_, {name}).push_back(owner.tensor);
    const bool matrix = shape.size() == 2 && shape[0] > 1 && shape[1] > 1;
    if (matrix && shape[0] != shape[1]) {
      std::vector<std::int64_t>& turned = reshaped(Mistake::transposed, at);
      std::swap(turned[0], turned[1]);
      mutations_.back().says = "(hint: it is transposed)";
    }
    if (matrix && shape[1] % 2 == 0) {
      reshaped(Mistake::rank_three, at) = {shape[0], shape[1] / 2, 2};
    }
    reshaped(Mistake::empty_axis, at).back() = 0;
    reshaped(Mistake::negative_axis, at).back() *= -1;
    reshaped(Mistake::huge_axis, at).assign(shape.size(), std::int64_t{1} << 62);
  }

  std::vector<std::int64_t>& reshaped(Mistake mistake, std::size_t at) {
    return add(mistake, size_text, list_, {list_[at].name})[at].shape;
  }

  /// Each has the shape of the other: both are told. Of one size, they have the same shape.
  void query_for_key(const Owner& owner) {
    std::string entry = owner.parts.front().entry;
    if (owner.parts.size() != 1 || !entry.ends_with(".query")) return;
    entry.replace(entry.size() - 5, 5, "key");
    for (const Owner& other : model_.owners) {
      const NamedShape &query = owner.tensor, &key = other.tensor;
      if (other.parts.front().entry != entry || query.shape == key.shape) continue;
      for (const std::string& told : {query.name, key.name}) {
        for (NamedShape& tensor : add(Mistake::swapped, size_text, list_, {told})) {
          if (tensor.name == query.name) {
            tensor.shape = key.shape;
          } else if (tensor.name == key.name) {
            tensor.shape = query.shape;
          }
        }
      }
    }
  }

  void vocabulary(const Owner& owner) {
    const std::int64_t rows = model_.shape.vocab - 1;
    for (NamedShape& tensor : add(Mistake::wrong_vocab, size_text, list_, {owner.tensor.name})) {
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
    add(Mistake::layer_missing, ": no tensor found, but depth = ", missing, gone);
    add(Mistake::layer_too_many, ", but depth = ", more, added);
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
    add(mistake, size_text, list, names);
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
