// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/given_roles.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::detail {

/// Two sizes of a model: which of their tensors are layers and experts, and which tensor of the base each of the target is.
class PairedDescriptions {
 protected:
  /// Throws:   InvalidInput as from_descriptions().
  PairedDescriptions(const ModelDescription& target, const ModelDescription& base,
                     const SideSizes& depth, const std::vector<architecture::RoleOverride>& roles)
      : target_(target), tensors_(target), roles_(roles), base_(base), base_model_(base) {
    find_layers(depth);
    pair_tensors();
    find_ends(depth);
    target_lists_ = lists_of_experts(target_, tensors_);
    base_lists_ = lists_of_experts(base_, base_model_);
  }

  static std::string growth(const SideSizes& size) { return growth(size.base, size.target); }
  static std::string growth(long from, long to) {
    return std::to_string(from) + " to " + std::to_string(to);
  }

  bool in_layers(const std::string& name) const {
    const NumberedName numbered = split_number(name);
    return layers_.contains(numbered.before) && !ends_.contains({numbered.before, numbered.number});
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

  /// Whether it is one of several experts that are numbered, such as h.0.experts.3.up.
  bool is_numbered_expert(std::size_t i) {
    return target_lists_.contains(list_of(target_.tensors[i].name));
  }

  /// The text before the number of an expert: "h.0.experts.".
  std::string list_of(const std::string& name) { return expert_in(name).before; }

  /// How many experts there are: side by side in one tensor, or numbered in a list.
  SideSizes experts_with(std::size_t i) {
    if (!is_numbered_expert(i)) return side(i, 'e');
    return {target_lists_.at(list_of(target_.tensors[i].name)),
            base_lists_.at(list_of(twins_[i]->name))};
  }

  const ModelDescription& target_;
  NumberedTensors tensors_;
  GivenRoles roles_;
  std::set<std::string> layers_;               // "h." of "h.0.attn.weight"
  std::vector<const DescribedTensor*> twins_;  // of the base, by tensor of the target
  std::vector<std::string> of_one_model_;      // what only() says of both
  std::vector<std::string> other_lists_;       // of layers, which do not grow as the given depth
  SideSizes depth_;
  std::string depth_reason_;

  void note_layers(std::vector<std::string>& notes) const {
    if (!of_one_model_.empty()) {
      notes.push_back("in one of the two models alone, though both have as many layers: " +
                      up_to_three(of_one_model_));
    }
    if (!other_lists_.empty()) {
      notes.push_back(
          up_to_three(other_lists_) +
          ": do not grow like the depth that was given: none of their numbers depends on it, "
          "and their branches get no factor");
    }
  }

 private:
  // ---- layers ---------------------------------------------------------------------------------

  /// Depths that are given decide which lists are layers: those that grow like them.
  void find_layers(const SideSizes& given) {
    const bool is_given = given.target > 0 && given.base > 0;
    SideSizes first = given, depth{0, 0};
    std::string names;
    for (const std::string& before : tensors_.lists()) {
      if (split_expert(before + "0").before == before) continue;
      const SideSizes layers{tensors_.count(before), base_model_.count(before)};
      if (layers.target == 0 || layers.base == 0) continue;
      const bool known = is_given && layers.target == given.target && layers.base == given.base;
      const bool alike = layers.target > 1 && tensors_.alike(before) && makes_features(before);
      if (!layers.grows() && !known && !alike) continue;
      const std::string name = before.empty() ? "the model itself" : messages::printable(before);
      if (!is_given && layers_.empty()) first = layers;
      if (!same_ratio(layers, first)) {
        if (is_given) {
          if (alike) other_lists_.push_back(name + " (" + growth(layers) + ")");
          continue;
        }
        const SideSizes& depth_of_most = layers.target > first.target ? layers : first;
        if (layers.grows() && first.grows()) {
          throw InvalidInput(name, growth(layers) + " layers",
                             "layers that grow like those of " + names + ", " + growth(first),
                             "a rule knows one depth: describe a base in which both are as many "
                             "times less deep");
        }
        throw InvalidInput(
            name, growth(layers) + " layers",
            "layers that grow like those of " + names + ", " + growth(first),
            "say what the depth is, as in --set depth=" + std::to_string(depth_of_most.target) +
                " --set base.depth=" + std::to_string(depth_of_most.base));
      }
      layers_.insert(before);
      names += (names.empty() ? "" : " and ") + name;
      depth.target += layers.target;
      depth.base += layers.base;
    }
    if (names.empty()) depth = is_given ? given : SideSizes{1, 1};
    depth_ = depth;
    depth_reason_ = names.empty()
                        ? "no modules numbered from 0 have a matrix in common and both read and "
                          "make features"
                        : "numbered under " + names;
  }

  /// Whether inputs and outputs of each of a list, of the same length in both models, grow, as those of layers do:
  /// several heads make no features, several embeddings read none, and the last matrix of an MLP may be a head.
  bool makes_features(const std::string& before) const {
    std::map<long, std::set<char>> growing;  // letters of axes, by number
    for (const DescribedTensor& tensor : target_.tensors) {
      const NumberedName name = split_number(tensor.name);
      const DescribedTensor* twin = base_model_.find(tensor.name);
      if (name.before != before || twin == nullptr || twin->sizes.size() != tensor.sizes.size())
        continue;
      for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
        if (tensor.sizes[axis] != twin->sizes[axis]) growing[name.number].insert(tensor.axes[axis]);
      }
    }
    for (long number = 0; number < tensors_.count(before); ++number) {
      if (!growing[number].contains('i') || !growing[number].contains('o')) return false;
    }
    return true;
  }

  // ---- the base's tensors ---------------------------------------------------------------------

  void pair_tensors() {
    const Twins in_base(tensors_, base_model_), in_target(base_model_, tensors_);
    std::vector<std::string> missing;
    bool deeper = true;  // all that are missing are in layers that the base does not have
    for (const DescribedTensor& tensor : target_.tensors) {
      const DescribedTensor* twin =
          in_base.find(tensor, expert_in(tensor.name), in_layers(tensor.name));
      if (twin == nullptr) {
        missing.push_back(messages::printable(tensor.name));
        const NumberedName name = split_number(tensor.name);
        deeper = deeper && in_layers(tensor.name) && name.number >= base_model_.count(name.before);
      }
      twins_.push_back(twin);
    }
    if (!missing.empty()) {
      throw InvalidInput("base", "without " + up_to_three(missing), "the tensors of the target",
                         deeper ? "do deeper layers have it? give a base that is as deep"
                                : "only layers may be more, which the first number of a name "
                                  "counts from 0, and experts: name others by --role "
                                  "PATTERN=expert");
    }
    for (const DescribedTensor& tensor : base_.tensors) {
      if (in_target.find(tensor, expert_in(tensor.name), in_layers(tensor.name)) == nullptr) {
        missing.push_back(messages::printable(tensor.name));
      }
    }
    if (!missing.empty()) {
      throw InvalidInput("target", "without " + up_to_three(missing), "the tensors of the base");
    }
    for (std::size_t i = 0; i < twins_.size(); ++i)
      require_same_kind(target_.tensors[i], *twins_[i]);
    only("target", tensors_, base_model_);
    only("base", base_model_, tensors_);
  }

  /// Tensors of layers that the other model lacks, though it has as many layers: one may have been forgotten there.
  void only(const std::string& model, const NumberedTensors& one, const NumberedTensors& other) {
    for (const auto& [name, tensor] : one.by_name()) {
      const std::string before = split_number(name).before;
      const NumberedName expert = expert_in(name);
      const bool has_twin =
          other.find(expert.number < 0 ? name : expert.before + "0" + expert.after) != nullptr;
      if (has_twin || !layers_.contains(before) || one.count(before) != other.count(before))
        continue;
      of_one_model_.push_back(messages::printable(name) + " (in the " + model + ")");
    }
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

  /// The first and the last matrix of an MLP may be numbered with its layers, but read or make no features; norms
  /// between two layers are no further ones.
  void find_ends(const SideSizes& given) {
    std::map<Place, std::set<char>> growing;  // letters of axes
    std::map<Place, Place> in_base;
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const DescribedTensor& tensor = target_.tensors[i];
      if (!in_layers(tensor.name) || !tensor.tied_to.empty()) continue;
      std::set<char>& letters = growing[place_of(tensor)];
      in_base.emplace(place_of(tensor), place_of(*twins_[i]));
      for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
        if (tensor.sizes[axis] != twins_[i]->sizes[axis]) letters.insert(tensor.axes[axis]);
      }
    }
    std::map<std::string, std::set<long>> layers;  // that do both, by list
    std::set<Place> others;
    for (const auto& [place, letters] : growing) {
      if (letters.contains('i') && letters.contains('o')) {
        layers[place.first].insert(place.second);
      } else {
        others.insert(place);
      }
    }
    std::set<Place> of_base;
    for (const Place& place : others) {
      const auto [list, number] = place;
      if (!layers.contains(list)) continue;
      const std::set<long>& of_list = layers.at(list);
      if (number < *of_list.begin() || number > *of_list.rbegin()) ends_.insert(place);
      const bool is_given = given.target > 0 && given.base > 0;
      if (is_given) continue;
      --depth_.target;
      if (of_base.insert(in_base.at(place)).second) --depth_.base;
    }
  }

  // ---- numbered experts -----------------------------------------------------------------------

  using Lists =
      std::map<std::string, long>;  // how many experts, by what stands before their numbers

  /// The name split at the number of an expert; the number is -1 where it has none.
  NumberedName expert_in(const std::string& name) {
    const std::optional<GivenRole> role = roles_.of(name);
    const bool expert = role == GivenRole::expert;
    if (role && !expert && role != GivenRole::vector) return {name, -1, ""};
    return split_expert(name, expert);
  }

  /// Requires that the experts of a list have the same tensors.
  Lists lists_of_experts(const ModelDescription& model, const NumberedTensors& tensors) {
    std::map<std::string, std::map<long, std::size_t>> counts;  // of tensors, by list and expert
    for (const DescribedTensor& tensor : model.tensors) {
      const NumberedName expert = expert_in(tensor.name);
      if (expert.number < 0) continue;
      ++counts[expert.before][expert.number];
      const DescribedTensor* first = tensors.find(expert.before + "0" + expert.after);
      if (first != nullptr && first->kind == tensor.kind && first->axes == tensor.axes &&
          first->sizes == tensor.sizes)
        continue;
      throw InvalidInput("tensor " + messages::printable(tensor.name),
                         first == nullptr ? "of no other expert" : "not like that of expert 0",
                         "the same tensors in each expert, numbered from 0",
                         "if it is not an expert, give its role, as in --role PATTERN=hidden");
    }
    Lists lists;
    for (const auto& [before, experts] : counts) {
      const auto size = static_cast<long>(experts.size());
      for (const auto& [number, count] : experts) {
        if (count == experts.at(0) && experts.rbegin()->first == size - 1) continue;
        throw InvalidInput("experts " + messages::printable(before) + std::to_string(number),
                           std::to_string(count) + " tensors, of " + std::to_string(size) +
                               " experts up to number " + std::to_string(experts.rbegin()->first),
                           "all experts from 0, each with the tensors of the first",
                           "if they are not experts, give their role, as in --role PATTERN=hidden");
      }
      lists.emplace(before, size);
    }
    return lists;
  }

  using Place = std::pair<std::string, long>;  // what stands before the number of a layer, and it

  static Place place_of(const DescribedTensor& tensor) {
    const NumberedName numbered = split_number(tensor.name);
    return {numbered.before, numbered.number};
  }

  const ModelDescription& base_;
  NumberedTensors base_model_;
  std::set<Place> ends_;  // numbered like layers, without being one
  Lists target_lists_, base_lists_;
};

}  // namespace scalewise::detail
