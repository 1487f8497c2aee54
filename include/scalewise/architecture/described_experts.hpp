// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scalewise/architecture/described_model.hpp"
#include "scalewise/architecture/paired_descriptions.hpp"

namespace scalewise::detail {

/// Which tensors of two sizes of a model are experts and routers: experts side by side in one tensor, or numbered.
class DescribedExperts : protected PairedDescriptions {
 protected:
  DescribedExperts(const ModelDescription& target, const ModelDescription& base,
                   const std::vector<architecture::RoleOverride>& roles, const Shape& shape,
                   const Shape& base_shape)
      : PairedDescriptions(target, base, {shape.depth, base_shape.depth}, roles) {
    model_.shape = shape;
    model_.base = base_shape;
    model_.shape.depth = depth_.target;
    model_.base.depth = depth_.base;
  }

  /// A size of the model, with the reason for it.
  void say(const std::string& name, const SideSizes& size, const std::string& reason) {
    model_.sizes.push_back(name + " " + growth(size) + ": " + reason);
  }

  /// The number of experts is that of those side by side or in a list, of those that grow if any do.
  void find_experts() {
    SideSizes found{0, 0};
    std::string reason;
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const std::string& name = target_.tensors[i].name;
      if (!is_expert(i) && !side_by_side(i)) continue;
      blocks_of_experts_.insert(block_of(name));
      const bool numbered = is_numbered_expert(i);
      if (!numbered && !side_by_side(i)) continue;
      const SideSizes experts = experts_with(i);
      if (found.target > 0 && (!experts.grows() || found.grows())) continue;
      found = experts;
      reason = numbered ? "numbered under " + messages::printable(with_stars(list_of(name)))
                        : "copies side by side";
    }
    const std::string same_sum = ", whose weights have to sum up to the same in both models";
    if (found.target > 0) say("experts", found, reason + (found.grows() ? same_sum : ""));
    if (model_.shape.experts == 0) model_.shape.experts = found.target;
    if (model_.base.experts == 0) model_.base.experts = found.base;
  }

  bool is_number_of_experts(const SideSizes& size) const {
    return size.target > 1 && size.target == model_.shape.experts &&
           size.base == model_.base.experts;
  }

  bool is_router(std::size_t i, const SideSizes& inputs, const SideSizes& outputs) const {
    return inputs.grows() && is_number_of_experts(outputs) &&
           blocks_of_experts_.contains(block_of(target_.tensors[i].name));
  }

  /// Finds which experts lead up from the stream and which down to it, and how many features they have between.
  void find_expert_features() {
    std::set<std::string> modules;
    SideSizes up{0, 0}, down{0, 0};
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const bool has_inputs = target_.tensors[i].axes.find('i') != std::string::npos;
      if (!has_inputs || !is_expert(i)) continue;
      const std::string& name = target_.tensors[i].name;
      const bool is_down =
          leads_down(side(i, 'i'), side(i, 'o'), modules.insert(module_of(name)).second);
      experts_.emplace(i, is_down ? Group::expert_down : Group::expert_up);
      SideSizes& found = is_down ? down : up;
      if (found.target == 0) found = side(i, is_down ? 'i' : 'o');
    }
    const SideSizes& features = down.target > 0 ? down : up;
    if (model_.shape.expert_ff == 0) model_.shape.expert_ff = features.target;
    if (model_.base.expert_ff == 0) model_.base.expert_ff = features.base;
  }

  DescribedModel model_;
  std::set<std::string> blocks_of_experts_;
  std::map<std::size_t, Group> experts_;  // by tensor of the target

 private:
  /// A given role says so, or that it is something else.
  bool is_expert(std::size_t i) {
    const bool found = side_by_side(i) || is_numbered_expert(i);
    return roles_.of(target_.tensors[i].name)
               .value_or(found ? GivenRole::expert : GivenRole::hidden) == GivenRole::expert;
  }

  /// By the side that has the sizes of the stream, or grows with it where the other does not. Where both are like the
  /// stream, the first of a module leads up.
  bool leads_down(const SideSizes& inputs, const SideSizes& outputs, bool first) const {
    const SideSizes stream{model_.shape.d_model, model_.base.d_model};
    const auto is_stream = [&](const SideSizes& side) {
      return side.target == stream.target && side.base == stream.base;
    };
    const bool inputs_grow = same_ratio(inputs, stream), outputs_grow = same_ratio(outputs, stream);
    if (inputs_grow != outputs_grow) return outputs_grow;
    return is_stream(outputs) && (!is_stream(inputs) || !first);
  }
};

}  // namespace scalewise::detail
