// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/name.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise {

/// The function of a tensor, as far as its model's code says so.
enum class TensorKind {
  linear,     // multiplies its inputs: linear layers, convolutions, experts
  embedding,  // one row per token or position
  gain,       // multiplies feature by feature
  bias,       // is added
  other,      // its role has to be given
};

namespace architecture {

inline constexpr messages::Spelling<TensorKind, 5> tensor_kind_words{
    {{TensorKind::linear, "linear"},
     {TensorKind::embedding, "embedding"},
     {TensorKind::gain, "gain"},
     {TensorKind::bias, "bias"},
     {TensorKind::other, "other"}}};

}  // namespace architecture

/// One tensor of a model of any architecture.
/// Shapes:   `sizes` in the order in which the code stores them. A letter of `axes` says what each is: i inputs,
///           o outputs, k positions of a kernel, e copies side by side, such as experts. So PyTorch's Linear is "oi",
///           its Embedding "io", Conv2d "oikk", a bias "o".
struct DescribedTensor {
  std::string name;
  TensorKind kind = TensorKind::linear;
  std::string axes;
  std::vector<long> sizes;
  std::string tied_to = {};  // the name of the tensor whose numbers these are

  friend bool operator==(const DescribedTensor&, const DescribedTensor&) = default;
};

/// The tensors of a model, in the order of its forward pass.
struct ModelDescription {
  std::vector<DescribedTensor> tensors;

  friend bool operator==(const ModelDescription&, const ModelDescription&) = default;
};

/// The roles that a tensor of a described model can be given.
enum class GivenRole { input, hidden, output, vector, router, expert };

namespace architecture {

inline constexpr messages::Spelling<GivenRole, 6> given_role_words{{{GivenRole::input, "input"},
                                                                    {GivenRole::hidden, "hidden"},
                                                                    {GivenRole::output, "output"},
                                                                    {GivenRole::vector, "vector"},
                                                                    {GivenRole::router, "router"},
                                                                    {GivenRole::expert, "expert"}}};

/// The role that a user gives all tensors whose names match a pattern, in which each * stands for any text.
struct RoleOverride {
  std::string pattern;
  GivenRole role = GivenRole::hidden;
};

}  // namespace architecture

namespace detail {

/// Why a tensor has a role that was given, and which of its sides contradicts it: an output's do not grow, nor does what an
/// input reads.
inline std::string given_reason(GivenRole role, bool inputs_grow, bool outputs_grow) {
  std::string reason = "given: " + std::string(word(architecture::given_role_words, role));
  if (role == GivenRole::input && inputs_grow) reason += ", though its inputs grow";
  if (role == GivenRole::output && outputs_grow) reason += ", though its outputs grow";
  return reason;
}

inline void check_axes(const DescribedTensor& tensor) {
  const std::string field = "tensor " + messages::printable(tensor.name) + ", axes";
  const auto refuse = [&](const std::string& expectation) {
    throw InvalidInput(field, tensor.axes.empty() ? "(empty)" : messages::printable(tensor.axes),
                       expectation);
  };
  if (tensor.axes.size() != tensor.sizes.size()) {
    refuse("a letter for each of the " + std::to_string(tensor.sizes.size()) + " sizes");
  }
  if (tensor.axes.find_first_not_of("ioke") != std::string::npos) {
    refuse("letters i (inputs), o (outputs), k (positions of a kernel) and e (copies)");
  }
  const bool inputs = tensor.axes.find('i') != std::string::npos;
  const bool outputs = tensor.axes.find('o') != std::string::npos;
  using enum TensorKind;
  if ((tensor.kind == linear || tensor.kind == embedding) && !(inputs && outputs)) {
    refuse("an i and an o, as a matrix has inputs and outputs");
  }
  if ((tensor.kind == gain || tensor.kind == bias) && inputs) refuse("no i: it has no inputs");
}

/// Requires: sizes of 2^60 numbers at most.
inline std::int64_t entries_of(const DescribedTensor& tensor) {
  std::int64_t numbers = 1;
  for (const long size : tensor.sizes) numbers *= size;
  return numbers;
}

}  // namespace detail

namespace architecture {

/// Requires that a description can be one of a model.
/// Throws:   InvalidInput naming the tensor and its field: for a name that require_name() refuses or that two
///           tensors have, a size that is not a positive integer or above 2^30, axes that are not those of the kind,
///           and a tie to no other tensor of the same number of entries.
inline void check_description(const ModelDescription& model) {
  if (model.tensors.empty()) throw InvalidInput("tensors", "(none)", "the tensors of a model");
  std::map<std::string, const DescribedTensor*> by_name;
  for (const DescribedTensor& tensor : model.tensors) {
    if (tensor.name.empty()) throw InvalidInput("tensor, name", "(empty)", "the name of a tensor");
    messages::require_name("tensor, name", tensor.name);
    const std::string field = "tensor " + messages::printable(tensor.name);
    if (!by_name.emplace(tensor.name, &tensor).second) {
      throw InvalidInput(field, "twice", "a name that no other tensor has");
    }
    if (tensor.name.find('*') != std::string::npos) {
      throw InvalidInput(field, "with *", "a name without *, which stands for the layer in a plan");
    }
    std::int64_t numbers = 1;  // `long` has 32 bits on Windows
    for (const long size : tensor.sizes) {
      if (size < 1 || size > architecture::largest_size) {
        throw InvalidInput(field + ", sizes", std::to_string(size), "a size from 1 to 2^30");
      }
      if (numbers > (std::int64_t{1} << 60) / size) {
        throw InvalidInput(field + ", sizes", std::to_string(size), "at most 2^60 numbers in all");
      }
      numbers *= size;
    }
    detail::check_axes(tensor);
  }
  for (const DescribedTensor& tensor : model.tensors) {
    if (tensor.tied_to.empty()) continue;
    const auto refuse = [&](const std::string& expectation) {
      throw InvalidInput("tensor " + messages::printable(tensor.name) + ", tied_to",
                         messages::printable(tensor.tied_to), expectation);
    };
    const auto of = by_name.find(tensor.tied_to);
    if (tensor.tied_to == tensor.name || of == by_name.end())
      refuse("the name of another tensor of the model");
    if (!of->second->tied_to.empty()) refuse("a tensor that is not tied itself");
    if (detail::entries_of(tensor) != detail::entries_of(*of->second))
      refuse("a tensor of " + std::to_string(detail::entries_of(tensor)) + " numbers as well");
  }
}

}  // namespace architecture

/// The description of a model that a shape describes; its names are those of plans.
/// Throws:   InvalidInput as resolved().
inline ModelDescription describe(const Shape& shape) {
  ModelDescription model;
  for (const Tensor& tensor : tensors(resolved(shape))) {
    const Group group = tensor.group;
    const bool table = role_of(group) == Role::input && group != Group::patch_embedding;
    using enum TensorKind;
    TensorKind kind = architecture::is_norm_gain(group) ? gain
                      : architecture::is_matrix(group)  ? linear
                                                        : bias;
    if (table) kind = embedding;
    const bool other_kind = role_of(group) == Role::rescaler || group == Group::relative_position ||
                            group == Group::residual_gain;
    if (other_kind) kind = other;
    if (group == Group::class_token) {
      model.tensors.push_back({tensor.name, embedding, "io", {1, tensor.rows}});
    } else if (!architecture::is_matrix(group) && tensor.columns == 1) {
      model.tensors.push_back({tensor.name, kind, "o", {tensor.rows}});
    } else {
      model.tensors.push_back({tensor.name, kind, "io", {tensor.rows, tensor.columns}});
    }
  }
  return model;
}

}  // namespace scalewise
