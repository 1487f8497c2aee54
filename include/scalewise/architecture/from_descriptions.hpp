// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/extra.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"

namespace scalewise {

/// A model that two of its sizes describe.
struct DescribedModel {
  Shape shape;  // Blocks::listed
  Shape base;
  std::vector<Extra> tensors;        // all of the target, with names of its own
  std::vector<std::string> reasons;  // one per tensor: why it has its group
  std::vector<std::string> ties;     // "lm_head.weight is model.embed_tokens.weight"
};

namespace detail {

/// Compares two sizes of a model, tensor by tensor.
class DescriptionReader {
 public:
  DescriptionReader(const ModelDescription& target, const ModelDescription& base,
                    const std::vector<architecture::RoleOverride>& roles, const Shape& shape,
                    const Shape& base_shape)
      : target_(target), tensors_(target), base_(base), roles_(roles), base_model_(base) {
    model_.shape = shape;
    model_.base = base_shape;
    used_.assign(roles.size(), false);
  }

  DescribedModel read() && {
    find_layers();
    pair_tensors();
    find_width();
    find_places();
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) add(i);
    require_used_roles();
    return std::move(model_);
  }

 private:
  // ---- layers ---------------------------------------------------------------------------------

  void find_layers() {
    std::optional<std::pair<long, long>> first;
    std::string first_name;
    std::vector<std::pair<long, long>> counts;
    for (const std::string& before : tensors_.lists()) {
      const long layers = tensors_.count(before), base_layers = base_model_.count(before);
      if (layers == 0 || base_layers == 0) continue;
      const bool deeper = layers != base_layers;
      const bool known = layers == model_.shape.depth && base_layers == model_.base.depth;
      if (!deeper && !known && (layers < 2 || !tensors_.alike(before))) continue;
      if (first && first->first * base_layers != layers * first->second) {
        throw InvalidInput(messages::printable(before), growth(base_layers, layers) + " layers",
                           "layers that grow like those of " + messages::printable(first_name) +
                               ", " + growth(first->second, first->first));
      }
      if (!first) {
        first = {layers, base_layers};
        first_name = before;
      }
      layers_.insert(before);
      counts.emplace_back(layers, base_layers);
    }
    long depth = 0, base_depth = 0;
    for (const auto& [layers, base_layers] : counts) {
      depth += layers;
      base_depth += base_layers;
    }
    model_.shape.depth = std::max(depth, 1L);
    model_.base.depth = std::max(base_depth, 1L);
  }

  static std::string growth(long from, long to) {
    return std::to_string(from) + " to " + std::to_string(to);
  }

  bool in_layers(const std::string& name) const {
    return layers_.contains(split_number(name).before);
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

  // ---- the width ------------------------------------------------------------------------------

  /// The width is what most outputs grow with, where the user has not said it.
  void find_width() {
    if (model_.shape.d_model > 0 && model_.base.d_model > 0) return;
    std::map<std::pair<long, long>, std::size_t> sides;
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const SideSizes outputs = side(i, 'o');
      if (outputs.grows()) ++sides[{outputs.target, outputs.base}];
    }
    if (sides.empty()) {
      throw InvalidInput("base", "no output of a tensor that differs from the target's",
                         "the same model at another width",
                         "build it with the sizes that rates were tuned on");
    }
    const auto most =
        std::max_element(sides.begin(), sides.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    model_.shape.d_model = most->first.first;
    model_.base.d_model = most->first.second;
  }

  /// A size, some times, by those that have a name: "4*d_model", "43*d_model/16", "64".
  std::string size_text(std::size_t i, const char* which, const SideSizes& size,
                        long some = 1) const {
    if (!size.grows()) return std::to_string(some * size.target);
    for (const NamedSize& named : named_sizes) {
      const long target = model_.shape.*named.field, base = model_.base.*named.field;
      if (target == base || base <= 0 || !same_ratio(size, {target, base})) continue;
      const long common = std::gcd(some * size.target, target);
      const long times = some * size.target / common, over = target / common;
      return (times == 1 ? "" : std::to_string(times) + "*") + std::string(named.name) +
             (over == 1 ? "" : "/" + std::to_string(over));
    }
    throw InvalidInput(
        "tensor " + messages::printable(target_.tensors[i].name) + ", " + which,
        growth(size.base, size.target),
        "a multiple of d_model, which grows from " +
            growth(model_.base.d_model, model_.shape.d_model),
        "give the size that it grows with a name, as in --set d_ff=" + std::to_string(size.target) +
            " --set base.d_ff=" + std::to_string(size.base));
  }

  // ---- roles ----------------------------------------------------------------------------------

  std::optional<GivenRole> given(const std::string& name) {
    std::optional<GivenRole> found;
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if (!matches_glob(roles_[r].pattern, name)) continue;
      found = roles_[r].role;
      used_[r] = true;
    }
    return found;
  }

  void require_used_roles() const {
    for (std::size_t r = 0; r < roles_.size(); ++r) {
      if (used_[r]) continue;
      throw InvalidInput("role", messages::printable(roles_[r].pattern),
                         "a pattern of names of the model's tensors");
    }
  }

  /// Where a vector stands: in the layers, or before or after them.
  Group vector_group(std::size_t i, bool gain, bool grows) const {
    if (in_layers(target_.tensors[i].name) || layers_.empty()) {
      return gain ? Group::norm_gain : Group::hidden_bias;
    }
    if (i < last_in_layers_) return gain ? Group::embedding_norm_gain : Group::embedding_norm_bias;
    if (!grows) return gain ? Group::final_norm_gain : Group::head_bias;
    return gain ? Group::final_norm_gain : Group::final_norm_bias;
  }

  struct Decision {
    Group group;
    std::string reason;
  };

  Decision decide(std::size_t i, const SideSizes& inputs, const SideSizes& outputs) {
    const DescribedTensor& tensor = target_.tensors[i];
    using enum TensorKind;
    const bool embedding_kind = tensor.kind == embedding;
    if (const std::optional<GivenRole> role = given(tensor.name)) {
      const auto group = *role == GivenRole::input
                             ? (embedding_kind ? Group::token_embedding : Group::patch_embedding)
                         : *role == GivenRole::hidden ? Group::hidden
                         : *role == GivenRole::output
                             ? Group::head
                             : vector_group(i, tensor.kind == gain, outputs.grows());
      return {group, "given: " + std::string(word(architecture::given_role_words, *role))};
    }
    if (tensor.kind == gain || tensor.kind == bias) {
      return {vector_group(i, tensor.kind == gain, outputs.grows()),
              std::string(word(architecture::tensor_kind_words, tensor.kind)) +
                  (outputs.grows() ? " that grows" : " of fixed size")};
    }
    if (tensor.kind == embedding) return {Group::token_embedding, "embedding"};
    if (tensor.kind == other) {
      throw InvalidInput("tensor " + messages::printable(tensor.name), "other", "a role",
                         "give --role PATTERN=vector, or input, hidden or output");
    }
    if (inputs.grows() && outputs.grows()) return {Group::hidden, "inputs and outputs grow"};
    if (inputs.grows()) return {Group::head, "inputs grow"};
    if (outputs.grows()) return {Group::patch_embedding, "outputs grow"};
    if (model_.shape.d_model == model_.base.d_model) {
      throw InvalidInput("tensor " + messages::printable(tensor.name), "as wide as in the base",
                         "a role",
                         "sides that grow would say it: give a base of another width, or --role");
    }
    return {Group::patch_embedding, "neither side grows"};
  }

  /// The inputs of the matrix that a bias belongs to, the tensor of the same module.
  std::string inputs_of_matrix(const std::string& bias) const {
    const auto matrix = matrices_.find(module_of(bias));
    return matrix == matrices_.end() ? "d_model" : inputs_text(matrix->second);
  }

  static std::string module_of(const std::string& name) {
    return name.substr(0, name.rfind('.') + 1);
  }

  /// The first matrix of each module, and where the last layer ends.
  void find_places() {
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const DescribedTensor& tensor = target_.tensors[i];
      if (tensor.kind == TensorKind::linear) matrices_.emplace(module_of(tensor.name), i);
      if (in_layers(tensor.name)) last_in_layers_ = i;
    }
  }

  /// The inputs of copies of a matrix side by side.
  std::string inputs_text(std::size_t i, long copies = 1) const {
    return size_text(i, "inputs", side(i, 'i'), copies * side(i, 'k').target);
  }

  void add(std::size_t i) {
    const DescribedTensor& tensor = target_.tensors[i];
    if (!tensor.tied_to.empty()) {
      model_.ties.push_back(tensor.name + " is " + tensor.tied_to);
      const DescribedTensor* of = tensors_.find(tensor.tied_to);
      if (of->kind == TensorKind::embedding) model_.shape.tied_head = model_.base.tied_head = true;
      return;
    }
    const SideSizes copies = side(i, 'e'), kernel = side(i, 'k');
    if (copies.grows() || kernel.grows()) {
      throw InvalidInput(
          "tensor " + messages::printable(tensor.name) + ", " +
              (copies.grows() ? "copies" : "kernel"),
          copies.grows() ? growth(copies.base, copies.target) : growth(kernel.base, kernel.target),
          "as many in both models", "no rule for models by role scales with them");
    }
    const SideSizes inputs = side(i, 'i'), outputs = side(i, 'o');
    const auto [group, reason] = decide(i, inputs, outputs);
    Extra extra{tensor.name, group, "", "1", ""};
    if (architecture::is_matrix(group)) {
      extra.rows = tensor.kind == TensorKind::embedding
                       ? std::to_string(copies.target * inputs.target)
                       : inputs_text(i, copies.target);
      extra.columns = size_text(i, "outputs", outputs);
      const bool alone = copies.target > 1 && architecture::reads_width(group);
      if (alone) extra.fan_in = inputs_text(i);
    } else {
      extra.rows = size_text(i, "size", whole(i), copies.target);
      if (group == Group::hidden_bias) extra.fan_in = inputs_of_matrix(tensor.name);
    }
    fold_layers(i, extra, reason);
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

  /// One extra with * for the layers of a model with one list of them, where they are alike.
  void fold_layers(std::size_t i, Extra& extra, const std::string& reason) {
    const NumberedName name = split_number(target_.tensors[i].name);
    if (layers_.size() == 1 && layers_.contains(name.before) && alike(name, extra)) {
      if (name.number > 0) return;
      extra.name = name.before + "*" + name.after;
    }
    model_.tensors.push_back(extra);
    model_.reasons.push_back(reason);
  }

  /// True where all layers have this tensor with the same sizes, and the same role is given to it.
  bool alike(const NumberedName& name, const Extra& extra) {
    const auto [known, is_new] = alike_.try_emplace(name.before + "*" + name.after, false);
    if (is_new) known->second = compare_layers(name, extra);
    return known->second;
  }

  bool compare_layers(const NumberedName& name, const Extra& extra) {
    const DescribedTensor* first = tensors_.find(name.before + "0" + name.after);
    if (first == nullptr) return false;
    for (long layer = 0; layer < tensors_.count(name.before); ++layer) {
      const DescribedTensor* other =
          tensors_.find(name.before + std::to_string(layer) + name.after);
      if (other == nullptr || other->sizes != first->sizes || other->axes != first->axes ||
          given(other->name) != given(extra.name)) {
        return false;
      }
    }
    return true;
  }

  const ModelDescription& target_;
  NumberedTensors tensors_;
  const ModelDescription& base_;
  const std::vector<architecture::RoleOverride>& roles_;
  NumberedTensors base_model_;
  std::set<std::string> layers_;               // "h." of "h.0.attn.weight"
  std::vector<const DescribedTensor*> twins_;  // of the base, by tensor of the target
  std::vector<bool> used_;                     // by role given
  std::map<std::string, std::size_t> matrices_;
  std::size_t last_in_layers_ = 0;
  std::map<std::string, bool> alike_;  // by name with * for the layer
  DescribedModel model_;
};

}  // namespace detail

/// The list of tensors of a model of any architecture, from descriptions of two sizes of it: which sides of a tensor
/// grow says what it is.
/// Equation: inputs and outputs grow: hidden; outputs: input; inputs: output; a gain or bias: vector. The width is
///           what most outputs grow with; layers are what is numbered from 0 under one name, alike in all, or as
///           many as the depths of the shapes.
/// Requires: `shape` and `base_shape`, Blocks::listed, with the sizes that have names already (head_dim, d_ff, …) or
///           none. A tensor of kind other needs a role.
/// Throws:   InvalidInput as check_description(), and for a base without a wider or narrower tensor, tensors of one of
///           both alone (but those of more layers), another kind or orientation in the base, a matrix without a role
///           where the base is as wide as the target, layers of two stacks
///           that grow differently, a side that grows with no named size, copies or kernels that grow, and a role for
///           no tensor.
inline DescribedModel from_descriptions(const ModelDescription& target,
                                        const ModelDescription& base,
                                        const std::vector<architecture::RoleOverride>& roles = {},
                                        const Shape& shape = {.blocks = Blocks::listed},
                                        const Shape& base_shape = {.blocks = Blocks::listed}) {
  architecture::check_description(target);
  architecture::check_description(base);
  return detail::DescriptionReader(target, base, roles, shape, base_shape).read();
}

}  // namespace scalewise
