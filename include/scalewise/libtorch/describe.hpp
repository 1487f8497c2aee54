// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/architecture/description.hpp"
#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/libtorch/registered.hpp"
#include "scalewise/messages/problems.hpp"

namespace scalewise::libtorch {

/// A kind and axes for tensors whose names match a pattern: {"*.up", "linear:eoi"}.
using GivenKind = std::pair<std::string, std::string>;

namespace detail {

template <class... Types>
bool is_one_of(const torch::nn::Module& module) {
  return ((dynamic_cast<const Types*>(&module) != nullptr) || ...);
}

/// The first two axes of a transposed convolution: depthwise it reads a single input for each
/// output. None for other modules, and where neither axis is the number of inputs of an output.
template <class Convolution>
std::string transposed_axes(const torch::nn::Module& module) {
  const auto* found = dynamic_cast<const Convolution*>(&module);
  if (found == nullptr) return "";
  const std::int64_t groups = found->options.groups();
  if (groups == 1) return "io";
  return groups == found->options.in_channels() ? "oi" : "";
}

/// LayerNormImpl, and a norm of your own, by its name.
inline bool is_norm(const torch::nn::Module& module) {
  std::string name = module.name().substr(module.name().rfind(':') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return name.find("norm") != std::string::npos;
}

/// The kind and axes of a parameter as text, by the module that has it. The rules are those of
/// python/scalewise_describe.py.
inline std::string kind_of(const torch::nn::Module& module, std::string_view name,
                           std::size_t axes) {
  using namespace torch::nn;
  const bool bias = name == "bias" || name.starts_with("bias_") || name.ends_with("_bias");
  if (axes == 1 && bias) return "bias:o";
  if (axes == 1 && name != "weight") return "other:o";
  const std::string kernel(axes > 2 ? axes - 2 : 0, 'k');
  if (is_one_of<EmbeddingImpl, EmbeddingBagImpl>(module)) return "embedding:io";
  const std::string transposed = transposed_axes<ConvTranspose1dImpl>(module) +
                                 transposed_axes<ConvTranspose2dImpl>(module) +
                                 transposed_axes<ConvTranspose3dImpl>(module);
  if (axes > 1 && !transposed.empty()) return "linear:" + transposed + kernel;
  if (is_one_of<LinearImpl, Conv1dImpl, Conv2dImpl, Conv3dImpl>(module)) {
    return "linear:oi" + kernel;
  }
  const bool stored_as_linear = is_one_of<RNNImpl, LSTMImpl, GRUImpl, RNNCellImpl, LSTMCellImpl,
                                          GRUCellImpl, MultiheadAttentionImpl>(module);
  if (axes == 2 && stored_as_linear) return "linear:oi";
  if (axes == 1 && is_norm(module)) return "gain:o";
  return "other:" + std::string(axes > 1 ? axes - 1 : 0, 'i') + (axes > 0 ? "o" : "");
}

/// Describes a module, one parameter after the other.
class Describer {
 public:
  explicit Describer(const std::vector<GivenKind>& kinds) : kinds_(kinds), used_(kinds.size()) {}

  void add(const std::string& prefix, const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      add((prefix.empty() ? "" : prefix + ".") + item.key(), item.key(), module, item.value());
    }
  }

  ModelDescription take() && {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (used_[k]) continue;
      problems_.push_back("kinds: " + messages::printable(kinds_[k].first) +
                          ": expected a pattern of names of the module's tensors");
    }
    messages::require_none("the module cannot be described:", problems_);
    return std::move(model_);
  }

 private:
  void add(const std::string& name, const std::string& own, const torch::nn::Module& module,
           const at::Tensor& parameter) {
    std::string text = kind_of(module, own, static_cast<std::size_t>(parameter.dim()));
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (!scalewise::detail::matches_glob(kinds_[k].first, name)) continue;
      text = kinds_[k].second;
      used_[k] = true;
    }
    const bool fixed = text == "fixed";
    if (fixed == parameter.requires_grad()) {
      problem(name,
              fixed ? "trained: expected a frozen tensor, as its kind is fixed"
                    : "frozen: expected a tensor that is trained (hint: describe the module before "
                      "it is frozen; the kind fixed leaves out what is never trained)");
    }
    if (fixed) return;
    if (is_stale(module, own, parameter)) problems_.push_back(stale_problem(name));
    const std::size_t colon = (std::min)(text.find(':'), text.size());
    DescribedTensor tensor{
        name, TensorKind::other, text.substr((std::min)(colon + 1, text.size())), {}};
    tensor.kind =
        value_of(architecture::tensor_kind_words, "kind of " + name, text.substr(0, colon));
    for (const std::int64_t size : parameter.sizes())
      tensor.sizes.push_back(static_cast<long>(size));
    const auto [first, is_new] = first_.emplace(parameter.unsafeGetTensorImpl(), name);
    if (!is_new) tensor.tied_to = first->second;
    model_.tensors.push_back(std::move(tensor));
  }

  void problem(const std::string& name, const std::string& text) {
    problems_.push_back(name + ": " + text);
  }

  const std::vector<GivenKind>& kinds_;
  std::vector<bool> used_;
  std::map<const void*, std::string> first_;  // the name of each parameter
  std::vector<std::string> problems_;
  ModelDescription model_;
};

}  // namespace detail

/// The tensors of a module of any architecture, for from_descriptions(); python/scalewise.py says the same of the same
/// model. Kinds follow from the types of modules; `kinds` says those of others, as "linear:eoi". A tensor of which nobody
/// says it has TensorKind::other; "fixed" leaves out what is never trained. A parameter that is registered twice is tied.
/// Throws:   std::invalid_argument with a line for each parameter that is frozen, for a layer that computes with
///           another tensor than the registered one, and for patterns without a tensor; InvalidInput for a kind
///           or axes that are none.
inline ModelDescription describe(const torch::nn::Module& module,
                                 const std::vector<GivenKind>& kinds = {}) {
  detail::Describer describer(kinds);
  describer.add("", module);
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    describer.add(item.key(), *item.value());
  }
  ModelDescription model = std::move(describer).take();
  architecture::check_description(model);
  return model;
}

}  // namespace scalewise::libtorch
