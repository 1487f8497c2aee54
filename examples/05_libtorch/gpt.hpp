// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A GPT in LibTorch, with the names and the layout of nanoGPT: an ordinary model. Lines that follow a plan are
// marked "scalewise", and those that show a recorder what it computes "records".
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <scalewise/torch.hpp>  // scalewise
#include <string>
#include <vector>

namespace torch_gpt {

struct Config {
  std::int64_t width = 64, layers = 2, heads = 4, kv_heads = 4, context = 32, vocab = 128;
  scalewise::Model rule;  // scalewise: the multipliers
};

inline Config config_of(const scalewise::Plan& plan) {
  const scalewise::Shape& s = plan.shape;
  return {s.d_model, s.depth, s.heads, s.kv_heads, s.context, s.vocab, plan.model};
}

struct AttentionImpl : torch::nn::Module {
  explicit AttentionImpl(const Config& c)
      : config(c),
        c_attn(register_module(
            "c_attn", torch::nn::Linear(c.width, (c.heads + 2 * c.kv_heads) * c.width / c.heads))),
        c_proj(register_module("c_proj", torch::nn::Linear(c.width, c.width))) {}

  at::Tensor forward(const at::Tensor& x) {
    const std::int64_t batch = x.size(0), tokens = x.size(1), size = config.width / config.heads;
    const std::vector<std::int64_t> parts{config.heads * size, config.kv_heads * size,
                                          config.kv_heads * size};
    const std::vector<at::Tensor> qkv = c_attn->forward(x).split_with_sizes(parts, 2);
    const auto heads_of = [&](const at::Tensor& t, std::int64_t heads) {
      return t.view({batch, tokens, heads, size})
          .transpose(1, 2)
          .repeat_interleave(config.heads / heads, 1);
    };
    const at::Tensor q = heads_of(qkv[0], config.heads), k = heads_of(qkv[1], config.kv_heads),
                     v = heads_of(qkv[2], config.kv_heads);
    const at::Tensor past = at::ones({tokens, tokens}, at::kBool).tril();
    const double scale = config.rule.attention_scale.value;  // scalewise
    const at::Tensor scores = scale * q.matmul(k.transpose(2, 3));
    const at::Tensor p =
        scores.masked_fill(past.logical_not(), -std::numeric_limits<float>::infinity()).softmax(3);
    return c_proj->forward(p.matmul(v).transpose(1, 2).reshape({batch, tokens, config.width}));
  }

  Config config;
  torch::nn::Linear c_attn, c_proj;
};
TORCH_MODULE(Attention);

struct MlpImpl : torch::nn::Module {
  explicit MlpImpl(const Config& c)
      : c_fc(register_module("c_fc", torch::nn::Linear(c.width, 4 * c.width))),
        c_proj(register_module("c_proj", torch::nn::Linear(4 * c.width, c.width))) {}

  at::Tensor forward(const at::Tensor& x) { return c_proj->forward(at::gelu(c_fc->forward(x))); }

  torch::nn::Linear c_fc, c_proj;
};
TORCH_MODULE(Mlp);

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(const Config& c)
      : ln_1(register_module("ln_1", torch::nn::LayerNorm(norm(c)))),
        ln_2(register_module("ln_2", torch::nn::LayerNorm(norm(c)))),
        attn(register_module("attn", Attention(c))),
        mlp(register_module("mlp", Mlp(c))) {}

  static torch::nn::LayerNormOptions norm(const Config& c) {
    return torch::nn::LayerNormOptions({c.width});
  }

  torch::nn::LayerNorm ln_1, ln_2;
  Attention attn;
  Mlp mlp;
};
TORCH_MODULE(Block);

struct BodyImpl : torch::nn::Module {
  explicit BodyImpl(const Config& c)
      : wte(register_module("wte", torch::nn::Embedding(c.vocab, c.width))),
        wpe(register_module("wpe", torch::nn::Embedding(c.context, c.width))),
        h(register_module("h", torch::nn::ModuleList())),
        ln_f(register_module("ln_f", torch::nn::LayerNorm(BlockImpl::norm(c)))) {
    for (std::int64_t i = 0; i < c.layers; ++i) h->push_back(Block(c));
  }

  torch::nn::Embedding wte, wpe;
  torch::nn::ModuleList h;
  torch::nn::LayerNorm ln_f;
};
TORCH_MODULE(Body);

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const Config& c)
      : config(c),
        transformer(register_module("transformer", Body(c))),
        lm_head(register_module(
            "lm_head", torch::nn::Linear(torch::nn::LinearOptions(c.width, c.vocab).bias(false)))) {
  }

  at::Tensor forward(const at::Tensor& tokens) {
    const double embedding = config.rule.embedding_multiplier.value;  // scalewise
    at::Tensor x = embedding * transformer->wte->forward(tokens) +
                   transformer->wpe->forward(at::arange(tokens.size(1), at::kLong));
    see("embedding", x);  // records
    for (std::size_t i = 0; i < transformer->h->size(); ++i) {
      const double skip = config.rule.residuals[i].skip.value;      // scalewise
      const double branch = config.rule.residuals[i].branch.value;  // scalewise
      const auto block = transformer->h->ptr<BlockImpl>(i);
      const std::string layer = "layer." + std::to_string(i) + ".";
      const at::Tensor attention = block->attn->forward(block->ln_1->forward(x));
      see(layer + "attention.output", attention);  // records
      x = skip * x + branch * attention;
      const at::Tensor mlp = block->mlp->forward(block->ln_2->forward(x));
      see(layer + "mlp.output", mlp);  // records
      x = skip * x + branch * mlp;
    }
    x = transformer->ln_f->forward(x);
    see("final_hidden", x);                                        // records
    const double multiplier = config.rule.logit_multiplier.value;  // scalewise
    const at::Tensor logits = multiplier * lm_head->forward(x);
    see("logits", logits);  // records
    return logits;
  }

  void see(const std::string& name, const at::Tensor& value) {   // records
    if (recorder != nullptr) recorder->activation(name, value);  // records
  }                                                              // records

  Config config;
  Body transformer;
  torch::nn::Linear lm_head;
  scalewise::libtorch::ModuleRecorder* recorder = nullptr;  // records
};
TORCH_MODULE(Gpt);

}  // namespace torch_gpt
