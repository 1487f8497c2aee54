// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::detail {

/// Two sizes of a model: which of their tensors are layers, and which tensor of the base each of the target is.
class PairedDescriptions {
 protected:
  /// Throws:   InvalidInput as from_descriptions().
  PairedDescriptions(const ModelDescription& target, const ModelDescription& base,
                     const SideSizes& depth)
      : target_(target), tensors_(target), base_(base), base_model_(base) {
    find_layers(depth);
    pair_tensors();
  }

  static std::string growth(const SideSizes& size) { return growth(size.base, size.target); }
  static std::string growth(long from, long to) {
    return std::to_string(from) + " to " + std::to_string(to);
  }

  bool in_layers(const std::string& name) const {
    return layers_.contains(split_number(name).before);
  }

  SideSizes side(std::size_t i, char letter) const {
    SideSizes found;
    const DescribedTensor& tensor = target_.tensors[i];
    for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
      if (tensor.axes[axis] != letter) continue;
      found.target *= tensor.sizes[axis];
      found.base *= twins_[i]->sizes[axis];
    }
    return found;
  }

  /// All entries of a vector.
  SideSizes whole(std::size_t i) const {
    SideSizes all;
    for (std::size_t axis = 0; axis < target_.tensors[i].sizes.size(); ++axis) {
      if (target_.tensors[i].axes[axis] == 'e') continue;
      all.target *= target_.tensors[i].sizes[axis];
      all.base *= twins_[i]->sizes[axis];
    }
    return all;
  }

  /// Where a tensor stands: "h.3" for its layer.
  std::string block_of(const std::string& name) const {
    const NumberedName numbered = split_number(name);
    return in_layers(name) ? numbered.before + std::to_string(numbered.number) : "";
  }

  static std::string module_of(const std::string& name) {
    return name.substr(0, name.rfind('.') + 1);
  }

  bool side_by_side(std::size_t i) const {
    const DescribedTensor& tensor = target_.tensors[i];
    return tensor.kind == TensorKind::linear && tensor.axes.find('e') != std::string::npos;
  }

  const ModelDescription& target_;
  NumberedTensors tensors_;
  std::set<std::string> layers_;               // "h." of "h.0.attn.weight"
  std::vector<const DescribedTensor*> twins_;  // of the base, by tensor of the target
  SideSizes depth_;
  std::string depth_reason_;

 private:
  // ---- layers ---------------------------------------------------------------------------------

  /// Depths that are given decide which lists are layers: those that grow like them.
  void find_layers(const SideSizes& given) {
    const bool is_given = given.target > 0 && given.base > 0;
    SideSizes first = given, depth{0, 0};
    std::string names;
    for (const std::string& before : tensors_.lists()) {
      const SideSizes layers{tensors_.count(before), base_model_.count(before)};
      if (layers.target == 0 || layers.base == 0) continue;
      const bool known = is_given && layers.target == given.target && layers.base == given.base;
      if (!layers.grows() && !known && (layers.target < 2 || !tensors_.alike(before))) continue;
      if (!is_given && names.empty()) first = layers;
      if (!same_ratio(layers, first)) {
        if (is_given) continue;
        throw InvalidInput(
            messages::printable(before), growth(layers) + " layers",
            "layers that grow like those of " + names + ", " + growth(first),
            "say what the depth is, as in --set depth=" + std::to_string(first.target) +
                " --set base.depth=" + std::to_string(first.base));
      }
      layers_.insert(before);
      names += (names.empty() ? "" : " and ") + messages::printable(before);
      depth.target += layers.target;
      depth.base += layers.base;
    }
    if (names.empty()) depth = is_given ? given : SideSizes{1, 1};
    depth_ = depth;
    depth_reason_ = names.empty() ? "no names are numbered" : "numbered under " + names;
  }

  // ---- the base's tensors ---------------------------------------------------------------------

  void pair_tensors() {
    std::vector<std::string> missing;
    for (const DescribedTensor& tensor : target_.tensors) {
      const DescribedTensor* twin = base_model_.find(tensor.name);
      if (twin == nullptr && in_layers(tensor.name)) {  // deeper than the base
        twin = base_model_.find_in_any_layer(split_number(tensor.name));
      }
      if (twin == nullptr) missing.push_back(messages::printable(tensor.name));
      twins_.push_back(twin);
    }
    if (!missing.empty()) {
      throw InvalidInput("base", "without " + up_to_three(missing), "the tensors of the target",
                         "only layers that are numbered from 0 may be more");
    }
    for (const DescribedTensor& tensor : base_.tensors) {
      if (tensors_.find(tensor.name) == nullptr && !in_layers(tensor.name)) {
        missing.push_back(messages::printable(tensor.name));
      }
    }
    if (!missing.empty()) {
      throw InvalidInput("target", "without " + up_to_three(missing), "the tensors of the base");
    }
    for (std::size_t i = 0; i < twins_.size(); ++i)
      require_same_kind(target_.tensors[i], *twins_[i]);
  }

  static void require_same_kind(const DescribedTensor& tensor, const DescribedTensor& twin) {
    if (tensor.kind == twin.kind && tensor.axes == twin.axes && tensor.tied_to == twin.tied_to)
      return;
    const auto text = [](const DescribedTensor& of) {
      return std::string(word(architecture::tensor_kind_words, of.kind)) + " " + of.axes +
             (of.tied_to.empty() ? "" : ", tied to " + messages::printable(of.tied_to));
    };
    throw InvalidInput("tensor " + messages::printable(tensor.name), text(tensor),
                       "what it is in the base, " + text(twin));
  }

  const ModelDescription& base_;
  NumberedTensors base_model_;
};

}  // namespace scalewise::detail
