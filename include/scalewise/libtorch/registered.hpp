// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/nn/functional/instancenorm.h>  // which modules/instancenorm.h lacks in 1.13
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <string>
#include <string_view>
#include <vector>

namespace scalewise::libtorch::detail {

template <class Type>
const at::Tensor* member_of(const torch::nn::Module& module, std::string_view name) {
  const auto* own = dynamic_cast<const Type*>(&module);
  if (own == nullptr) return nullptr;
  if constexpr (requires { own->bias; }) {
    if (name == "bias") return &own->bias;
  }
  return name == "weight" ? &own->weight : nullptr;
}

/// Whether a layer of LibTorch computes with another tensor than the one that optimizers see, as after
/// `head->weight = embedding->weight`, for those with a weight and a bias.
inline bool is_stale(const torch::nn::Module& module, std::string_view name,
                     const at::Tensor& registered) {
  const auto differs = [&]<class... Types>() {
    const at::Tensor* used = nullptr;
    static_cast<void>((((used = member_of<Types>(module, name)) != nullptr) || ...));
    return used != nullptr && !used->is_same(registered);
  };
  using namespace torch::nn;
  return differs.template
  operator()<LinearImpl, BilinearImpl, EmbeddingImpl, EmbeddingBagImpl, Conv1dImpl, Conv2dImpl,
             Conv3dImpl, ConvTranspose1dImpl, ConvTranspose2dImpl, ConvTranspose3dImpl,
             LayerNormImpl, GroupNormImpl, BatchNorm1dImpl, BatchNorm2dImpl, BatchNorm3dImpl,
             InstanceNorm1dImpl, InstanceNorm2dImpl, InstanceNorm3dImpl, PReLUImpl>();
}

inline std::string stale_problem(const std::string& name) {
  return name +
         ": the module computes with another tensor than the registered one, which would not be "
         "trained (hint: assigning to a member ties nothing)";
}

/// A line for each parameter of a module, and of those in it, with which it does not compute.
inline std::vector<std::string> stale_parameters(const torch::nn::Module& module) {
  std::vector<std::string> problems;
  const auto add = [&](const std::string& prefix, const torch::nn::Module& one) {
    for (const auto& item : one.named_parameters(/*recurse=*/false)) {
      if (is_stale(one, item.key(), item.value()))
        problems.push_back(stale_problem(prefix + item.key()));
    }
  };
  add("", module);
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    add(item.key() + ".", *item.value());
  }
  return problems;
}

}  // namespace scalewise::libtorch::detail
