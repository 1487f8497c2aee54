// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A small mixture of experts in LibTorch, for docs/any_model.md; examples/pytorch/experts.py is the same model.
#pragma once

#include <torch/torch.h>

namespace torch_experts {

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(std::int64_t width, std::int64_t experts = 4)
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        router(register_module(
            "router", torch::nn::Linear(torch::nn::LinearOptions(width, experts).bias(false)))),
        up(register_parameter("up", at::zeros({experts, 2 * width, width}))),
        down(register_parameter("down", at::zeros({experts, width, 2 * width}))) {}

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden = norm->forward(x);
    const at::Tensor weights = router->forward(hidden).softmax(-1);
    const at::Tensor inner = at::einsum("...i,eoi->...eo", {hidden, up}).relu();
    return x + at::einsum("...eo,eio,...e->...i", {inner, down, weights});
  }

  torch::nn::LayerNorm norm;
  torch::nn::Linear router;
  at::Tensor up, down;
};
TORCH_MODULE(Block);

struct ExpertsImpl : torch::nn::Module {
  ExpertsImpl(std::int64_t width, std::int64_t depth, std::int64_t vocab = 1000)
      : embed(register_module("embed", torch::nn::Embedding(vocab, width))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        head(register_module(
            "head", torch::nn::Linear(torch::nn::LinearOptions(width, vocab).bias(false)))) {
    for (std::int64_t i = 0; i < depth; ++i) blocks->push_back(Block(width));
  }

  at::Tensor forward(const at::Tensor& tokens) {
    at::Tensor x = embed->forward(tokens);
    for (std::size_t i = 0; i < blocks->size(); ++i) x = blocks->ptr<BlockImpl>(i)->forward(x);
    return head->forward(norm->forward(x));
  }

  torch::nn::Embedding embed;
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Experts);

}  // namespace torch_experts
