// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/described_sizes.hpp"
#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/extra.hpp"

namespace scalewise {

namespace detail {

/// Where the code lists a head before the embedding that it is tied to, the two change places.
inline ModelDescription with_embeddings_first(ModelDescription model) {
  for (DescribedTensor& tensor : model.tensors) {
    if (tensor.tied_to.empty() || tensor.kind != TensorKind::embedding) continue;
    for (DescribedTensor& of : model.tensors) {
      if (of.name != tensor.tied_to || of.kind != TensorKind::linear) continue;
      std::swap(of.kind, tensor.kind);
      of.axes.swap(tensor.axes);
      of.sizes.swap(tensor.sizes);
    }
  }
  return model;
}

/// Compares two sizes of a model, tensor by tensor.
class DescriptionReader : DescribedSizes {
 public:
  DescriptionReader(const ModelDescription& target, const ModelDescription& base,
                    const std::vector<architecture::RoleOverride>& roles, const Shape& shape,
                    const Shape& base_shape)
      : DescribedSizes(target, base, roles, shape, base_shape) {}

  /// `names_sizes`: sizes are written as multiples of those that grow like them; false where only groups are asked for
  DescribedModel read(bool names_sizes = true) && {
    names_sizes_ = names_sizes;
    tied_is_given_ = model_.shape.tied_head.value_or(false);
    say("depth", depth_, depth_reason_);
    find_experts();
    find_width();
    require_roles();
    require_one_vocabulary();
    find_expert_features();
    find_places();
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) add(i);
    find_head();
    note_outputs_inside();
    note_layers(model_.notes);
    roles_.require_used();
    return std::move(model_);
  }

 private:
  // ---- roles ----------------------------------------------------------------------------------

  /// Requires a role for each tensor of which nobody said what it does.
  void require_roles() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const DescribedTensor& tensor = target_.tensors[i];
      if (tensor.kind != TensorKind::other || !tensor.tied_to.empty()) continue;
      if (roles_.of(tensor.name) || !why_vector(i).empty()) continue;
      std::string name = messages::printable(with_stars(tensor.name));
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
    if (names.empty()) return;
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    throw InvalidInput((names.size() == 1 ? "tensor " : "tensors ") + all, "other", "a role",
                       "give --role PATTERN=vector, or input, hidden or output" +
                           std::string(names.size() == 1 ? "" : ", for each") +
                           "; of matrices and experts their kind, where they are described");
  }

  /// Where a vector stands: in the layers, or before or after them; there, a bias is that of its matrix.
  Group vector_group(std::size_t i, bool gain, bool grows) const {
    const auto matrix = matrices_.find(module_of(target_.tensors[i].name));
    if (!gain && grows && matrix != matrices_.end() && !in_layers(target_.tensors[i].name))
      return side(matrix->second, 'i').grows() ? Group::hidden_bias : Group::patch_bias;
    const bool may_be_last = layers_.empty() && !gain && !grows && i > last_in_layers_;
    if (in_layers(target_.tensors[i].name) || (layers_.empty() && !may_be_last)) {
      return gain ? Group::norm_gain : Group::hidden_bias;
    }
    if (i < last_in_layers_) return gain ? Group::embedding_norm_gain : Group::embedding_norm_bias;
    if (!grows) return gain ? Group::final_norm_gain : Group::head_bias;
    return gain ? Group::final_norm_gain : Group::final_norm_bias;
  }

  bool hidden_follows(std::size_t i) const {
    while (++i < target_.tensors.size()) {
      if (target_.tensors[i].kind == TensorKind::linear && side(i, 'i').grows() &&
          side(i, 'o').grows())
        return true;
    }
    return false;
  }

  struct Decision {
    Group group;
    std::string reason;
    bool own_values = false;
  };

  /// Why a tensor of kind other is a vector, which multiplies no features with each other; empty where it may be a matrix.
  std::string why_vector(std::size_t i) const {
    const std::vector<long>&sizes = target_.tensors[i].sizes, &base = twins_[i]->sizes;
    std::size_t axes = 0, growing = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] > 1 || base[axis] > 1) ++axes;
      if (sizes[axis] != base[axis]) ++growing;
    }
    if (axes <= 1) return "one axis";
    const bool last_grows = sizes.back() != base.back();
    const bool of_batch = sizes.front() == 1 && base.front() == 1;
    return of_batch && growing == 1 && last_grows ? "alike for all of a batch" : "";
  }

  Group given_group(std::size_t i, GivenRole role, const SideSizes& outputs) const {
    const TensorKind kind = target_.tensors[i].kind;
    switch (role) {
      case GivenRole::input:
        return kind == TensorKind::embedding ? Group::token_embedding : Group::patch_embedding;
      case GivenRole::hidden:
        return Group::hidden;
      case GivenRole::output:
        return Group::head;
      case GivenRole::router:
        return Group::router;
      case GivenRole::expert:
        if (experts_.contains(i)) return experts_.at(i);
        break;  // a bias of one
      case GivenRole::vector:
        break;
    }
    return vector_group(i, kind == TensorKind::gain, outputs.grows());
  }

  /// A gain or bias is drawn as one: as a matrix, gains of 1 would become noise.
  static void require_role_of_kind(const DescribedTensor& tensor, GivenRole role) {
    const bool is_vector = tensor.kind == TensorKind::gain || tensor.kind == TensorKind::bias;
    if (!is_vector || role == GivenRole::vector || role == GivenRole::expert) return;
    throw InvalidInput(
        "role of " + messages::printable(tensor.name),
        std::string(word(architecture::given_role_words, role)),
        "vector, since it is a " + std::string(word(architecture::tensor_kind_words, tensor.kind)),
        "narrow the pattern, such as '*.weight'");
  }

  /// Which axes of a bare parameter are its inputs is a guess: what grows has to confirm it, or both sides be alike.
  void require_known_axes(std::size_t i, GivenRole role, const SideSizes& inputs,
                          const SideSizes& outputs) const {
    using enum GivenRole;
    const bool known = role == input    ? !inputs.grows()
                       : role == hidden ? same_ratio(inputs, outputs)
                       : role == expert ? false
                                        : !outputs.grows();
    if (known || role == vector || !why_vector(i).empty()) return;
    const std::string name = messages::printable(target_.tensors[i].name);
    throw InvalidInput("tensor " + name, "other " + target_.tensors[i].axes,
                       "its kind, and which axes are inputs and outputs",
                       "where it is described, as in kinds={PATTERN: \"linear:" +
                           std::string(role == expert ? "eoi" : "oi") + "\"}");
  }

  Decision decide(std::size_t i, const SideSizes& inputs, const SideSizes& outputs) {
    const DescribedTensor& tensor = target_.tensors[i];
    using enum TensorKind;
    if (const std::optional<GivenRole> role = roles_.of(tensor.name)) {
      require_role_of_kind(tensor, *role);
      if (tensor.kind == other) require_known_axes(i, *role, inputs, outputs);
      return {given_group(i, *role, outputs),
              given_reason(*role, tensor.kind != embedding && inputs.grows(), outputs.grows()),
              tensor.kind == other && *role == GivenRole::vector};
    }
    if (tensor.kind == gain || tensor.kind == bias) {
      return {vector_group(i, tensor.kind == gain, outputs.grows()),
              std::string(word(architecture::tensor_kind_words, tensor.kind)) +
                  (outputs.grows() ? " that grows" : " of fixed size")};
    }
    if (tensor.kind == embedding) {
      const bool wider = model_.shape.d_model != model_.base.d_model;
      if (wider && inputs.grows() && !outputs.grows()) {
        throw InvalidInput("tensor " + messages::printable(tensor.name),
                           "an embedding whose rows alone grow", "features that grow",
                           "its axes are \"io\" where it has a row for each token, as PyTorch's "
                           "has; or give --role");
      }
      return {Group::token_embedding, "embedding"};
    }
    if (side_by_side(i)) return {experts_.at(i), "copies side by side"};
    if (experts_.contains(i)) return {experts_.at(i), "one of numbered experts"};
    if (is_router(i, inputs, outputs)) return {Group::router, "inputs grow, an output per expert"};
    if (tensor.kind == other) return {vector_group(i, false, outputs.grows()), why_vector(i), true};
    if (inputs.grows() && outputs.grows()) return {Group::hidden, "inputs and outputs grow"};
    if (inputs.grows()) {
      const bool inside = layers_.empty() ? hidden_follows(i) : in_layers(tensor.name);
      if (inside && outputs.target > 1)  // else a gate
        outputs_inside_.push_back(messages::printable(with_stars(tensor.name)));
      return {Group::head, "inputs grow"};
    }
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

  /// The first matrix of each module, and where the last layer ends; without layers, the last matrix whose outputs grow.
  void find_places() {
    for (std::size_t i = 0; i < target_.tensors.size(); ++i) {
      const DescribedTensor& tensor = target_.tensors[i];
      const bool matrix = tensor.kind == TensorKind::linear;
      if (matrix) matrices_.emplace(module_of(tensor.name), i);
      if (layers_.empty() ? matrix && side(i, 'o').grows() : in_layers(tensor.name))
        last_in_layers_ = i;
    }
  }

  void add(std::size_t i) {
    const DescribedTensor& tensor = target_.tensors[i];
    if (!tensor.tied_to.empty()) {
      model_.ties.push_back(tensor.name + " is " + tensor.tied_to);
      tied_ = tied_ || is_tied_head(i);
      return;
    }
    const SideSizes copies = side(i, 'e');
    require_as_many(i);
    const SideSizes inputs = side(i, 'i'), outputs = side(i, 'o');
    const auto [group, reason, own_values] = decide(i, inputs, outputs);
    Extra extra{tensor.name, group, "", "1", "", own_values};
    if (architecture::is_matrix(group)) {
      const auto entries = [&](long some) { return std::to_string(some * inputs.target); };
      extra.rows = tensor.kind == TensorKind::embedding ? times_copies(copies, entries)
                                                        : inputs_text(i, copies);
      extra.columns = group == Group::router && outputs.grows() && is_number_of_experts(outputs)
                          ? "experts"
                          : size_text(i, "outputs", outputs);
      const bool alone = copies.target > 1 || copies.base > 1;
      if (alone && architecture::reads_width(group)) extra.fan_in = inputs_text(i);
    } else {
      extra.rows =
          times_copies(copies, [&](long some) { return size_text(i, "size", whole(i), some); });
      if (architecture::is_matrix_bias(group)) extra.fan_in = inputs_of_matrix(tensor.name);
      if (group == Group::head_bias && extra.fan_in == "d_model") extra.fan_in.clear();
    }
    fold_layers(i, extra, reason);
  }

  /// Whether a tied tensor gives logits from features that grow: an embedding that two stacks share is not a head, and
  /// features of fixed size need no factor.
  bool is_tied_head(std::size_t i) const {
    const DescribedTensor &tensor = target_.tensors[i], *of = tensors_.find(tensor.tied_to);
    if (tensor.kind == TensorKind::embedding || of->kind != TensorKind::embedding) return false;
    const auto at = static_cast<std::size_t>(of - target_.tensors.data());
    const SideSizes features = side(at, 'o'), width{model_.shape.d_model, model_.base.d_model};
    if (!features.grows()) return !width.grows();
    if (same_ratio(features, width)) return true;
    throw InvalidInput("tensor " + messages::printable(of->name) + ", outputs", growth(features),
                       "features that grow like d_model, from " + growth(width),
                       "a plan has one factor for logits of a tied head: describe it untied");
  }

  /// A head of its own has a multiplier of its own: with that of a tied one, logits would have both. The code may
  /// compute logits from the embedding, which no list shows.
  void find_head() {
    const auto find = [&](Group group) {
      return std::find_if(model_.tensors.begin(), model_.tensors.end(), [&](const Extra& tensor) {
        return tensor.group == group && !architecture::is_in_layers(tensor);
      });
    };
    const auto head = find(Group::head), end = model_.tensors.end();
    const bool embeds = find(Group::token_embedding) != end;
    if (tied_is_given_ && !tied_ && (head != end || !embeds)) {
      throw InvalidInput("tied_head", "true", "an embedding that gives the logits",
                         head == end ? "" : messages::printable(head->name) + " is the head");
    }
    model_.shape.tied_head = model_.base.tied_head = tied_ || tied_is_given_;
    if (tied_ || tied_is_given_ || head != end || model_.shape.d_model == model_.base.d_model)
      return;
    model_.notes.push_back(
        embeds ? "no tensor is a head: where the code computes logits from the embedding, give "
                 "--set tied_head=true"
               : "no tensor is a head: outside of the layers no matrix has inputs alone that grow");
  }

  void note_outputs_inside() {
    std::vector<std::string>& names = outputs_inside_;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    if (names.empty()) return;
    model_.notes.push_back(up_to_three(names) +
                           ": the numbers of an output; where a norm reads it, or it is keys or "
                           "values of attention, give --role PATTERN=hidden");
  }

  void require_as_many(std::size_t i) {
    const DescribedTensor& tensor = target_.tensors[i];
    const SideSizes copies = experts_with(i), kernel = side(i, 'k'),
                    experts{model_.shape.experts, model_.base.experts};
    const bool of_experts =
        (is_numbered_expert(i) || tensor.axes.find('e') != std::string::npos) && experts.grows();
    const bool other = (copies.grows() || of_experts) && !is_number_of_experts(copies);
    if (!other && !kernel.grows()) return;
    throw InvalidInput(
        "tensor " + messages::printable(tensor.name) + ", " + (other ? "copies" : "kernel"),
        other ? growth(copies) : growth(kernel),
        other ? growth(experts) + ", as of other experts" : "as large in both models");
  }

  /// One extra with * for the layers of a model with one list of them, where they are alike.
  void fold_layers(std::size_t i, Extra& extra, const std::string& reason) {
    const NumberedName name = split_number(target_.tensors[i].name);
    if (layers_.size() == 1 && layers_.contains(name.before) && alike(name, extra)) {
      if (name.number > 0) return;
      extra.name = name.before + "*" + name.after;
    }
    const bool here = in_layers(target_.tensors[i].name);
    if (!layers_.empty() && architecture::is_in_layers(extra) != here) extra.in_layers = here;
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
          other->tied_to.empty() != first->tied_to.empty() ||
          roles_.of(other->name) != roles_.of(extra.name)) {
        return false;
      }
    }
    return true;
  }

  bool tied_is_given_ = false, tied_ = false;  // the head, by the user and by the list
  std::map<std::string, std::size_t> matrices_;
  std::size_t last_in_layers_ = 0;
  std::vector<std::string> outputs_inside_;  // with * for numbers
  std::map<std::string, bool> alike_;        // by name with * for the layer
};

}  // namespace detail

/// The list of tensors of a model of any architecture, from descriptions of two sizes of it: which sides of a tensor
/// grow says what it is.
/// Equation: inputs and outputs grow: hidden; outputs: input; inputs: output; a gain or bias: vector. Copies of a matrix
///           side by side, or numbered from 0 under a name with "expert" in it: expert; inputs grow and outputs are as many as the experts of this layer: router. The width is
///           what most inputs and outputs grow with; layers are what is numbered from 0 under one name, alike in all, or as
///           many as the depths of the shapes.
/// Requires: `shape` and `base_shape`, Blocks::listed, with the sizes that have names already (head_dim, d_ff, …) or
///           none. A tensor of kind other needs a role, unless it is a vector: one axis, or first axes of 1 and a last one that
///           grows. Initial values of vectors of kind other are the model's own.
/// Throws:   InvalidInput as check_description(), and for a base without a wider or narrower tensor, tensors of one of both
///           alone (but those of more layers), another kind or orientation in the base, a matrix without a role where the
///           base is as wide as the target, layers of two stacks that grow differently, a side that grows with no named
///           size, kernels that grow, copies that grow otherwise than the experts, numbered experts that are not alike, an
///           embedding whose rows alone grow, a role for no tensor, a matrix's role for a gain or bias, that of a matrix of
///           kind other whose inputs are not known, a tied head that is given where the list has one of its own, and one
///           whose features grow otherwise than the width.
inline DescribedModel from_descriptions(const ModelDescription& target,
                                        const ModelDescription& base,
                                        const std::vector<architecture::RoleOverride>& roles = {},
                                        const Shape& shape = {.blocks = Blocks::listed},
                                        const Shape& base_shape = {.blocks = Blocks::listed}) {
  architecture::check_description(target);
  architecture::check_description(base);
  const ModelDescription model = detail::with_embeddings_first(target),
                         base_model = detail::with_embeddings_first(base);
  return detail::DescriptionReader(model, base_model, roles, shape, base_shape).read();
}

}  // namespace scalewise
