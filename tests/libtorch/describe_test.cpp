// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Descriptions of modules: the same file as python/scalewise.py writes of the same model, and plans from them.

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "examples/05_libtorch/experts.hpp"
#include "scalewise/json.hpp"
#include "scalewise/scalewise.hpp"
#include "scalewise/torch.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using scalewise::test::error_message;

struct RmsNormImpl : torch::nn::Module {
  explicit RmsNormImpl(std::int64_t width)
      : weight(register_parameter("weight", at::ones({width}))) {}
  at::Tensor weight;
};
TORCH_MODULE(RmsNorm);

/// A head that is the embedding.
struct TiedHeadImpl : torch::nn::LinearImpl {
  explicit TiedHeadImpl(const at::Tensor& shared)
      : LinearImpl(torch::nn::LinearOptions(shared.size(1), shared.size(0)).bias(false)) {
    parameters_["weight"] = weight = shared;
  }
};
TORCH_MODULE(TiedHead);

/// One layer of each kind; tests/python/describe_torch.py has the same in Python.
struct EachKind : torch::nn::Module {
  explicit EachKind(std::int64_t width = 8) {
    const torch::nn::Embedding embed(11, width);
    register_module("embed", embed);
    register_module("bag", torch::nn::EmbeddingBag(5, width));
    register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 3)));
    register_module(
        "back", torch::nn::ConvTranspose1d(torch::nn::ConvTranspose1dOptions(width, 2 * width, 4)));
    register_module("wider", torch::nn::ConvTranspose2d(
                                 torch::nn::ConvTranspose2dOptions(width, width, 4).groups(width)));
    register_module("grouped", torch::nn::ConvTranspose2d(
                                   torch::nn::ConvTranspose2dOptions(width, width, 4).groups(2)));
    register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    register_module("norm2", torch::nn::GroupNorm(torch::nn::GroupNormOptions(2, width)));
    register_module("norm3", RmsNorm(width));
    register_module("attention", torch::nn::MultiheadAttention(width, 2));
    register_module("recurrent", torch::nn::LSTM(width, 2 * width));
    register_module("cell", torch::nn::GRUCell(width, width));
    register_module("slope", torch::nn::PReLU());
    register_module("blocks", torch::nn::Sequential(torch::nn::Linear(width, 4 * width),
                                                    torch::nn::Linear(4 * width, width)));
    register_parameter("decay_log", at::zeros({width, 16}));
    register_parameter("experts", at::zeros({4, 2 * width, width}));
    register_parameter("out_bias", at::zeros({width}));
    register_module("head", TiedHead(embed->weight));
  }
};

/// Positions that are never trained, and the gain of a branch in a bare parameter.
struct OwnValues : torch::nn::Module {
  explicit OwnValues(std::int64_t width) {
    positions = register_parameter("positions", at::ones({1, 4, width}), /*requires_grad=*/false);
    gamma = register_parameter("gamma", at::full({width}, 0.1));
    in = register_module("in", torch::nn::Linear(3, width));
    out = register_module("out", torch::nn::Linear(width, 2));
  }
  at::Tensor positions, gamma;
  torch::nn::Linear in{nullptr}, out{nullptr};
};

/// Layers whose parameters are members as well.
struct Linears : torch::nn::Module {
  explicit Linears(std::int64_t width)
      : in(register_module("in", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 3)))),
        norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        mix(register_module("mix", torch::nn::Linear(width, width))),
        out(register_module("out", torch::nn::Linear(width, 5))) {}
  torch::nn::Conv2d in;
  torch::nn::LayerNorm norm;
  torch::nn::Linear mix, out;
};

const std::vector<libtorch::GivenKind> kinds{{"experts", "linear:eoi"}};

std::string refusal(const torch::nn::Module& module,
                    const std::vector<libtorch::GivenKind>& given) {
  return error_message<std::invalid_argument>(
      [&] { static_cast<void>(libtorch::describe(module, given)); });
}

DescribedModel experts_of(long width) {
  const std::vector<libtorch::GivenKind> given{{"*.up", "linear:eoi"}, {"*.down", "linear:eoi"}};
  return from_descriptions(libtorch::describe(*torch_experts::Experts(width, 4), given),
                           libtorch::describe(*torch_experts::Experts(16, 2), given));
}

Plan plan_of(const DescribedModel& model) {
  return make_plan(CompleteP{},
                   {.model = model.shape, .base = model.base, .extras = model.tensors});
}

}  // namespace

TEST_CASE("A module is described as python/scalewise.py describes the same model") {
  std::ifstream file(SCALEWISE_TEST_DIR "/libtorch/each_kind.json");
  const auto expected = nlohmann::ordered_json::parse(file);
  CHECK(to_json(libtorch::describe(EachKind(), kinds)).dump(1) == expected.dump(1));
}

TEST_CASE("A module that cannot be described is refused, tensor by tensor") {
  const EachKind module;
  CHECK(refusal(module, {{"experts", "linear:eoi"}, {"*.A_log", "gain:o"}}) ==
        "the module cannot be described:\n  kinds: *.A_log: expected a pattern of names of the "
        "module's tensors");
  CHECK_THAT(refusal(module, {{"experts", "linear:eo"}}),
             ContainsSubstring("tensor experts, axes = eo: expected a letter for each of the 3"));
  CHECK_THAT(refusal(module, {{"experts", "matrix:eoi"}}),
             ContainsSubstring("kind of experts = matrix: expected linear"));
  CHECK_THAT(refusal(module, {{"experts", ""}}), ContainsSubstring("kind of experts = "));

  torch_experts::Experts model(16, 2);
  model->norm->weight.set_requires_grad(false);
  model->embed->weight.set_requires_grad(false);
  model->head->weight = model->embed->weight;
  const std::string text = refusal(*model, {});
  CHECK_THAT(text, ContainsSubstring("\n  norm.weight: frozen: expected a tensor that is trained"));
  CHECK_THAT(text, ContainsSubstring("\n  embed.weight: frozen"));
  CHECK_THAT(text, ContainsSubstring("\n  head.weight: the module computes with another tensor"));
}

TEST_CASE("A layer that computes with another tensor than the registered one is refused") {
  using namespace torch::nn;
  const DescribedModel described =
      from_descriptions(libtorch::describe(Linears(64)), libtorch::describe(Linears(16)));
  const Plan plan = plan_of(described);
  const auto refusals = [&](const std::function<void(Linears&)>& change) {
    Linears model(64);
    change(model);
    return std::pair{refusal(model, {}), error_message<std::invalid_argument>([&] {
                       static_cast<void>(libtorch::plan_module(model, plan));
                     })};
  };
  CHECK(refusals([](Linears&) {}) == std::pair<std::string, std::string>("no error", "no error"));
  const std::pair<const char*, std::function<void(Linears&)>> changes[] = {
      {"in.weight",
       [](Linears& m) {
         m.in->weight = at::randn({64, 3, 3, 3});
       }},
      {"norm.weight", [](Linears& m) { m.norm->weight = at::ones({64}); }},
      {"norm.bias", [](Linears& m) { m.norm->bias = at::ones({64}); }},
      {"mix.bias", [](Linears& m) { m.mix->bias = at::ones({64}); }},
      {"out.weight", [](Linears& m) {
         m.out->weight = at::ones({5, 64});
       }}};
  for (const auto& [name, change] : changes) {
    CAPTURE(name);
    const auto [of_describe, of_plan] = refusals(change);
    const auto says =
        ContainsSubstring("\n  " + std::string(name) + ": the module computes with another tensor");
    CHECK_THAT(of_describe, says);
    CHECK_THAT(of_plan, says);
  }
}

TEST_CASE("A module that two descriptions describe is filled and grouped by its plan") {
  const DescribedModel described = experts_of(64);
  const Plan plan = plan_of(described);
  torch_experts::Experts model(64, 4);
  libtorch::PlannedModule planned = libtorch::plan_module(*model, plan);
  const at::Tensor before = model->blocks->ptr<torch_experts::BlockImpl>(3)->up.clone();
  libtorch::initialize(planned, 1, 0.02, {"*.up"});
  const auto block = model->blocks->ptr<torch_experts::BlockImpl>(3);
  CHECK(at::equal(block->up, before));
  // Table 8 with m_N = 4: variance 1/4; of 32768 numbers the deviation is within half a percent.
  CHECK(std::abs(block->down.std().item<double>() / 0.01 - 1) < 0.02);
  CHECK(at::equal(block->norm->weight, at::ones({64})));
  const torch::optim::AdamWOptions global(1e-2);
  torch::optim::AdamW optimizer(libtorch::param_groups(planned, global));
  CHECK_NOTHROW(libtorch::check_optimizer(optimizer, planned, global));
  const auto rate_of = [&](const at::Tensor& parameter) {
    for (const auto& group : optimizer.param_groups()) {
      for (const at::Tensor& one : group.params()) {
        if (one.is_same(parameter)) return group.options().get_lr();
      }
    }
    return 0.0;
  };
  CHECK(rate_of(block->up) == 1e-2 / 4);
  CHECK(rate_of(model->embed->weight) == 1e-2);
  CHECK(rate_of(model->head->weight) == 1e-2);  // its multiplier is 1/4
  CHECK(error_message<std::invalid_argument>([&] {
          libtorch::initialize(planned, 1, 0.02, {"*.A_log"});
        }) == "keep = *.A_log: expected a pattern of names of the plan's tensors");
}

TEST_CASE("Rows of embeddings that pad stay zero") {
  using namespace torch::nn;
  struct Words : Module {
    explicit Words(std::int64_t width)
        : embed(register_module("embed", Embedding(EmbeddingOptions(9, width).padding_idx(3)))),
          bag(register_module("bag", EmbeddingBag(EmbeddingBagOptions(9, width).padding_idx(4)))),
          out(register_module("out", Linear(width, 2))) {}
    Embedding embed;
    EmbeddingBag bag;
    Linear out;
  } model(16);
  libtorch::PlannedModule planned = libtorch::plan_module(
      model, plan_of(from_descriptions(libtorch::describe(model), libtorch::describe(Words(4)))));
  libtorch::initialize(planned, 1, 0.02);
  const auto zeros = [](const at::Tensor& weight) {
    return std::pair{weight.eq(0).all(1).nonzero().numel(),
                     weight.eq(0).all(1).nonzero().sum().item<std::int64_t>()};
  };
  CHECK(zeros(model.embed->weight) == std::pair<std::int64_t, std::int64_t>{1, 3});
  CHECK(zeros(model.bag->weight) == std::pair<std::int64_t, std::int64_t>{1, 4});
}

TEST_CASE("Values of a module's own stay, and what is never trained is left out") {
  const std::vector<libtorch::GivenKind> given{{"positions", "fixed"}};
  OwnValues model(16);
  const DescribedModel described =
      from_descriptions(libtorch::describe(model, given), libtorch::describe(OwnValues(4), given));
  libtorch::PlannedModule planned = libtorch::plan_module(model, plan_of(described));
  libtorch::initialize(planned, 1, 0.02);
  CHECK(at::equal(model.gamma, at::full({16}, 0.1)));
  CHECK(at::equal(model.positions, at::ones({1, 4, 16})));
  CHECK(at::equal(model.in->bias, at::zeros({16})));
  std::size_t grouped = 0;
  for (const auto& group : libtorch::param_groups(planned, torch::optim::AdamWOptions(1e-2)))
    grouped += group.params().size();
  CHECK(grouped == 5);
  CHECK_THAT(refusal(model, {{"positions", "fixed"}, {"gamma", "fixed"}}),
             ContainsSubstring("gamma: trained: expected a frozen tensor, as its kind is fixed"));
  model.positions.set_requires_grad(true);
  CHECK_THAT(error_message<std::invalid_argument>(
                 [&] { static_cast<void>(libtorch::plan_module(model, plan_of(described))); }),
             ContainsSubstring("positions: not in the plan"));
}

TEST_CASE("A module that is not the described one is refused, tensor by tensor") {
  const Plan plan = plan_of(experts_of(64));
  const auto refused = [&](const torch_experts::Experts& model) {
    return error_message<std::invalid_argument>(
        [&] { static_cast<void>(libtorch::plan_module(*model, plan)); });
  };
  CHECK(refused(torch_experts::Experts(64, 4)) == "no error");
  CHECK_THAT(refused(torch_experts::Experts(32, 4)),
             ContainsSubstring("blocks.*.up (4 tensors): 8192 numbers: expected 32768"));
  CHECK_THAT(refused(torch_experts::Experts(64, 3)),
             ContainsSubstring("blocks.3.up: missing in the module"));
  torch_experts::Experts more(64, 5), tied(64, 4);
  CHECK_THAT(refused(more), ContainsSubstring("blocks.4.router.weight: not in the plan"));
  tied->unregister_module("norm");
  const auto norm = std::make_shared<torch::nn::Module>();
  norm->register_parameter("weight", at::ones({64}));
  norm->register_parameter("bias", norm->named_parameters()["weight"]);
  norm->register_parameter("again", norm->named_parameters()["weight"]);
  tied->register_module("norm", norm);
  CHECK_THAT(refused(tied), ContainsSubstring("norm.bias: the same parameter as norm.weight") &&
                                !ContainsSubstring("again"));
}
