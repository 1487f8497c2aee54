// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The adapter for LibTorch on the GPT of examples/05_libtorch: it starts and trains as the reference
// transformer does, a right set-up passes, and each mistake is told by the tensor's name.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "examples/05_libtorch/gpt.hpp"
#include "instances/transformer.hpp"
#include "scalewise/check.hpp"
#include "scalewise/scalewise.hpp"
#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/numeric_gradient.hpp"

namespace {

using namespace scalewise;
using Catch::Matchers::ContainsSubstring;
using scalewise::test::error_message;
using torch::optim::AdamWOptions;
using torch_gpt::Gpt;

constexpr std::int64_t sequences = 4, tokens = 9, vocab = 31;

constexpr const char* both_rules[] = {"maximal-update", "complete-p"};

/// `shared`: how many queries share a key.
Shape torch_shape(long width, long shared = 1, long depth = 2) {
  Shape s{.d_model = width, .depth = depth, .heads = width / 8};
  s.kv_heads = s.heads / shared;
  s.context = tokens;
  s.vocab = vocab;
  s.tied_head = false;
  return s;
}

/// Wider than the base and, under CompleteP, twice as deep.
Plan torch_plan(const std::string& rule, long width, long shared = 1,
                DecayForm decay = DecayForm::coupled, const Optimizer& optimizer = adamw) {
  const long depth = rule == "complete-p" ? 4 : 2;
  return make_plan(rule, {.model = torch_shape(width, shared, depth),
                          .base = torch_shape(16, shared),
                          .optimizer = optimizer,
                          .decay = decay});
}

at::Tensor ids(const std::string& name) {
  const auto list = test::random_ids(sequences * tokens, vocab, name);
  at::Tensor tensor = at::empty({sequences, tokens}, at::kLong);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.view({-1})[i] = std::int64_t{list[static_cast<std::size_t>(i)]};
  }
  return tensor;
}

at::Tensor loss_of(Gpt& model, const at::Tensor& inputs, const at::Tensor& targets) {
  return at::cross_entropy_loss(model->forward(inputs).flatten(0, 1), targets.flatten());
}

/// A model with its plan, started.
struct Trained {
  explicit Trained(const Plan& plan, std::uint64_t seed = 7,
                   const dialect::Dialect& names = dialect::nanogpt)
      : model(torch_gpt::config_of(plan)), planned(libtorch::plan_module(*model, plan, names)) {
    libtorch::initialize(planned, seed, 0.3);
  }

  Gpt model;
  libtorch::PlannedModule planned;
};

AdamWOptions settings(double rate = 0.01) {
  return AdamWOptions(rate).weight_decay(0.1).eps(1e-9).betas({0.9, 0.95});
}

/// The verdict on a record of six steps, with a mistake that `change` makes before them.
check::Report verdict(const std::string& rule,
                      const std::function<void(Trained&, torch::optim::AdamW&)>& change) {
  check::Records records;
  std::vector<check::Member> family;
  for (const long width : {16L, 32L, 64L, 128L}) {
    const Plan plan = torch_plan(rule, width);
    family.push_back({width, plan});
    for (std::uint64_t seed = 0; seed < (width < 64 ? 6U : 3U); ++seed) {
      Trained t(plan, seed);
      torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, settings()));
      change(t, optimizer);
      libtorch::ModuleRecorder recorder(t.planned, {width, seed});
      t.model->recorder = &recorder;
      const at::Tensor inputs = ids("inputs" + std::to_string(seed)),
                       targets = ids("targets" + std::to_string(seed));
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grad();
        loss_of(t.model, inputs, targets).backward();
        recorder.step(optimizer);
      }
      records.merge(recorder.records());
    }
  }
  return check::coordinate_check(records, family);
}

void no_mistake(Trained&, torch::optim::AdamW&) {}

void one_rate(Trained&, torch::optim::AdamW& optimizer) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(0.01);
}

std::string refusal_of_plan(const torch::nn::Module& module, const Plan& plan) {
  return error_message<std::invalid_argument>(
      [&] { static_cast<void>(libtorch::plan_module(module, plan, dialect::nanogpt)); });
}

template <class Options>
std::string refusal_of_optimizer(torch::optim::Optimizer& optimizer, const Trained& t,
                                 const Options& global) {
  return error_message<std::invalid_argument>(
      [&] { libtorch::check_optimizer(optimizer, t.planned, global); });
}

}  // namespace

TEST_CASE("A module starts with the reference transformer's numbers and trains as it does") {
  torch::set_num_threads(1);
  for (const char* rule : {"maximal-update", "complete-p", "neural-tangent"}) {
    for (const long shared : {1L, 2L}) {
      // Its rates of a fused query and key differ where keys are shared.
      if (shared > 1 && std::string(rule) == "neural-tangent") continue;
      for (const DecayForm decay : {DecayForm::coupled, DecayForm::independent}) {
        const Plan plan = torch_plan(rule, 32, shared, decay);
        INFO(rule << ", keys shared by " << shared << ", " << word(policy::decay_words, decay));
        Trained t(plan);
        t.model->to(at::kDouble);
        t.planned = libtorch::plan_module(*t.model, plan, dialect::nanogpt);
        libtorch::initialize(t.planned, 7, 0.3);
        const double decay_rate = decay == DecayForm::independent ? 0.001 : 0.1;
        const auto global = settings().eps(1e-3);
        torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, global));
        CHECK_NOTHROW(libtorch::check_optimizer(optimizer, t.planned, global));

        nn::Transformer<double> reference(plan, {});
        nn::initialize(reference.parameters(), plan, 7, nn::BaseDeviation::uniform(0.3));
        nn::PlannedOptimizer<double> own(
            plan, {.rate = 0.01, .weight_decay = decay_rate, .epsilon = 1e-3});
        for (int step = 0; step < 20; ++step) {
          const std::string suffix = std::to_string(step % 4);
          nn::Batch<double> batch;
          batch.size = sequences;
          batch.tokens = test::random_ids(sequences * tokens, vocab, "tokens" + suffix);
          batch.targets = test::random_ids(sequences * tokens, vocab, "targets" + suffix);
          const double expected = reference.loss_and_gradient(batch);
          own.step(reference.parameters());
          optimizer.zero_grad();
          const at::Tensor loss = loss_of(t.model, ids("tokens" + suffix), ids("targets" + suffix));
          loss.backward();
          optimizer.step();
          // Both round some 10³ times between a weight and a loss; see support/training_losses.hpp.
          CHECK(std::abs(loss.item<double>() / expected - 1) < 1e-11);
        }
      }
    }
  }
}

TEST_CASE("Right set-ups of LibTorch pass the coordinate check") {
  torch::set_num_threads(1);
  for (const char* rule : both_rules) {
    const check::Report report = verdict(rule, no_mistake);
    INFO(rule << ": " << report.diagnosis);
    CHECK(report.missing.empty());
    CHECK(report.unknown.empty());
    CHECK(report.verdict == check::Verdict::pass);
  }
}

TEST_CASE("One rate and a missing logit multiplier fail in LibTorch, with their names") {
  torch::set_num_threads(1);
  for (const char* rule : both_rules) {
    const check::Report rates = verdict(rule, one_rate);
    CHECK(rates.verdict == check::Verdict::fail);
    CHECK_THAT(rates.diagnosis, ContainsSubstring("one global rate"));
    const check::Report logits = verdict(rule, [](Trained& t, torch::optim::AdamW&) {
      t.model->config.rule.logit_multiplier.value = 1;
    });
    CHECK(logits.verdict == check::Verdict::fail);
    CHECK_THAT(logits.diagnosis, ContainsSubstring("output multiplier missing"));
  }
}

TEST_CASE("Rows that take turns are those of their entry") {
  const at::Tensor whole = torch::arange(12, torch::kDouble).reshape({6, 2});
  const dialect::OwnedPart up{"layer.0.mlp_up", {{0, {{1, 3, 2}}}}};
  const at::Tensor odd = torch::tensor({2, 3, 6, 7, 10, 11}, torch::kDouble).reshape({3, 2});
  CHECK(torch::equal(libtorch::detail::part_of(whole, up), odd));
}

TEST_CASE("A module that is not the plan's is refused, tensor by tensor") {
  const char* rule = GENERATE(as<const char*>{}, "maximal-update", "complete-p");
  INFO(rule);
  const Plan plan = torch_plan(rule, 32);
  Gpt model{torch_gpt::config_of(plan)};
  model->transformer->register_parameter("extra", model->lm_head->weight);
  CHECK_THAT(refusal_of_plan(*model, plan), ContainsSubstring("transformer.extra"));

  Gpt narrow{torch_gpt::config_of(torch_plan(rule, 16))};
  const std::string text = refusal_of_plan(*narrow, plan);
  CHECK_THAT(text, ContainsSubstring("transformer.h.*.attn.c_attn.weight (" +
                                     std::to_string(plan.shape.depth) +
                                     " tensors): [48, 16]: expected [96, 32]"));
  CHECK_THAT(text, ContainsSubstring("lm_head.weight"));

  Gpt constant{torch_gpt::config_of(plan)};
  const auto head = std::make_shared<torch::nn::Module>();
  head->register_buffer("weight", at::zeros({vocab, 32}));
  constant->unregister_module("lm_head");
  constant->register_module("lm_head", head);
  CHECK_THAT(
      refusal_of_plan(*constant, plan),
      ContainsSubstring("lm_head.weight: a buffer: expected a parameter, as the plan trains it"));
}

TEST_CASE("A base deviation that is negative or not finite is refused before anything is written") {
  for (const char* rule : {"maximal-update", "gpt2"}) {
    INFO(rule);
    const Trained t(make_plan(rule, {.model = torch_shape(32), .base = torch_shape(16)}));
    libtorch::PlannedModule planned = t.planned;
    std::vector<at::Tensor> before;
    for (const at::Tensor& parameter : planned.parameters) before.push_back(parameter.clone());
    const auto refusal = [&](double value) {
      return error_message<std::invalid_argument>([&] { libtorch::initialize(planned, 8, value); });
    };
    const std::string expected = ": expected a finite number, 0 or greater";
    CHECK(refusal(-0.2) == "base_deviation = -0.2" + expected);
    CHECK(refusal(NAN) == "base_deviation = nan" + expected);
    CHECK(refusal(INFINITY) == "base_deviation = inf" + expected);
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(at::equal(planned.parameters[i], before[i]));
    }
    CHECK(refusal(0) == "no error");
  }
}

TEST_CASE("An optimizer that does not follow the plan is told by tensor") {
  const char* rule = GENERATE(as<const char*>{}, "maximal-update", "complete-p");
  INFO(rule);
  const Plan plan = torch_plan(rule, 32);
  const std::string fused = "transformer.h.1.attn.c_attn.weight";
  Trained t(plan);
  auto parameter = [&](const std::string& name) {
    for (std::size_t i = 0; i < t.planned.parameters.size(); ++i) {
      if (t.planned.tensor(i).name == name) return t.planned.parameters[i];
    }
    return at::Tensor();
  };

  parameter(fused).set_requires_grad(false);
  CHECK_THAT(error_message<std::invalid_argument>(
                 [&] { static_cast<void>(libtorch::param_groups(t.planned, settings())); }),
             ContainsSubstring(fused + ": frozen"));
  parameter(fused).set_requires_grad(true);

  torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, settings()));
  CHECK(refusal_of_optimizer(optimizer, t, settings()) == "no error");
  // A schedule that multiplies keeps the ratios, one that overwrites does not.
  for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() / 2);
  CHECK(refusal_of_optimizer(optimizer, t, settings(0.005)) == "no error");
  one_rate(t, optimizer);
  CHECK_THAT(
      refusal_of_optimizer(optimizer, t, settings()),
      ContainsSubstring("transformer.h.*.attn.c_attn.weight (" + std::to_string(plan.shape.depth) +
                        " tensors): lr = 0.01: expected 0.005"));
  libtorch::set_lr(optimizer, t.planned, 0.02);
  CHECK(refusal_of_optimizer(optimizer, t, settings(0.02)) == "no error");
  const Trained another(plan);
  CHECK(error_message<std::invalid_argument>(
            [&] { libtorch::set_lr(optimizer, another.planned, 0.03); }) ==
        "optimizer (group 0 has no parameter of the plan): expected the groups of this module "
        "(hint: make them by param_groups(planned, …))");
  torch::optim::AdamW more(libtorch::param_groups(t.planned, settings(0.02)));
  more.add_param_group(torch::optim::OptimizerParamGroup({at::ones({3, 5}).requires_grad_()}));
  CHECK_THAT(
      error_message<std::invalid_argument>([&] { libtorch::set_lr(more, t.planned, 0.03); }),
      ContainsSubstring("optimizer (group " + std::to_string(more.param_groups().size() - 1)));
  CHECK(refusal_of_optimizer(optimizer, t, settings(0.02)) == "no error");
  CHECK_THAT(refusal_of_optimizer(more, t, settings(0.02)), !ContainsSubstring("lr = "));

  torch::optim::AdamW twice(libtorch::param_groups(t.planned, settings()));
  twice.param_groups().back().params().push_back(parameter(fused));
  CHECK_THAT(refusal_of_optimizer(twice, t, settings()),
             ContainsSubstring(fused + ": in 2 places"));
  auto groups = libtorch::param_groups(t.planned, settings());
  groups.front().params().erase(groups.front().params().begin());
  groups.front().params().push_back(at::ones({3, 5}).requires_grad_());
  torch::optim::AdamW fewer(groups);
  const std::string text = refusal_of_optimizer(fewer, t, settings());
  CHECK_THAT(text, ContainsSubstring("in 0 places"));
  CHECK_THAT(text, ContainsSubstring(
                       "a parameter of shape [3, 5]: in the optimizer, but not in the plan"));

  Trained signs(plan);
  signs.planned.named.plan.optimizer = sign_sgd;
  CHECK_THAT(
      error_message<std::invalid_argument>(
          [&] { static_cast<void>(libtorch::param_groups(signs.planned, settings())); }),
      ContainsSubstring("optimizer = sign-sgd: expected one that LibTorch has: adamw or sgd"));
  CHECK_THAT(error_message<std::invalid_argument>([&] {
               static_cast<void>(libtorch::param_groups(t.planned, torch::optim::SGDOptions(0.1)));
             }),
             ContainsSubstring("options = SGDOptions: expected AdamWOptions"));
  const Trained l2(torch_plan("standard", 32, 1, DecayForm::l2));
  CHECK_NOTHROW(libtorch::param_groups(l2.planned, torch::optim::AdamOptions(0.1)));
  // Without decay both do the same.
  const auto no_decay = torch::optim::AdamOptions(0.1);
  torch::optim::Adam adam(libtorch::param_groups(t.planned, no_decay));
  CHECK(refusal_of_optimizer(adam, t, no_decay) == "no error");
  CHECK_THAT(error_message<std::invalid_argument>([&] {
               static_cast<void>(libtorch::param_groups(
                   t.planned, torch::optim::AdamOptions(0.1).weight_decay(0.1)));
             }),
             ContainsSubstring("options = AdamOptions: expected AdamWOptions"));
  // LibTorch takes the options of one optimizer for those of another.
  torch::optim::Adam other(libtorch::param_groups(t.planned, settings()));
  CHECK(refusal_of_optimizer(other, t, settings()) ==
        "optimizer = Adam: expected AdamW (hint: groups with options of another optimizer train "
        "otherwise than either)");
  torch::optim::RMSprop third(libtorch::param_groups(t.planned, settings()));
  CHECK_THAT(refusal_of_optimizer(third, t, settings()),
             ContainsSubstring("optimizer = RMSprop: expected AdamW"));
  struct Own : torch::optim::AdamW {  // may do anything
    using AdamW::AdamW;
  };
  Own own(libtorch::param_groups(t.planned, settings()));
  CHECK(refusal_of_optimizer(own, t, settings()) == "no error");
  // Groups of one's own, whose tensors have several rates.
  torch::optim::AdamW mixed(t.planned.parameters, settings());
  CHECK_THAT(
      error_message<std::invalid_argument>([&] { libtorch::set_lr(mixed, t.planned, 0.03); }),
      ContainsSubstring("optimizer (group 0 has parameters with different rates)"));
  CHECK(mixed.param_groups().front().options().get_lr() == 0.01);
  // A checkpoint of another width resizes the parameters in place.
  Trained resized(plan);
  torch::optim::AdamW late(libtorch::param_groups(resized.planned, settings()));
  resized.planned.parameters.front().set_data(at::ones({vocab, 16}));
  const std::string name = resized.planned.tensor(0).name;
  CHECK_THAT(refusal_of_optimizer(late, resized, settings()),
             ContainsSubstring(name + ": 496 numbers: expected 992, as it was planned"));
  CHECK_THAT(
      error_message<std::invalid_argument>([&] { libtorch::initialize(resized.planned, 1, 0.3); }),
      ContainsSubstring(name + ": 496 numbers: expected 992"));
  const Trained plain(torch_plan("maximal-update", 32, 1, DecayForm::coupled, sgd));
  torch::optim::SGD descent(libtorch::param_groups(plain.planned, torch::optim::SGDOptions(0.1)),
                            torch::optim::SGDOptions(0.1));
  CHECK(refusal_of_optimizer(descent, plain, torch::optim::SGDOptions(0.1)) == "no error");
}

TEST_CASE(
    "Query, key and value in another order than the plan's are told by the model's own gradients") {
  // The model cuts [query, key, value]; these tables say otherwise.
  const char* rule = GENERATE(as<const char*>{}, "maximal-update", "complete-p");
  INFO(rule);
  const Plan plan = torch_plan(rule, 32, 2);
  const auto message = [&](const char* order) {
    std::vector<dialect::TensorPattern> patterns(dialect::nanogpt.patterns.begin(),
                                                 dialect::nanogpt.patterns.end());
    for (dialect::TensorPattern& pattern : patterns) {
      if (pattern.name == "transformer.h.{}.attn.c_attn.weight") pattern.entries = order;
    }
    dialect::Dialect other = dialect::nanogpt;
    other.patterns = patterns;
    std::string all;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Trained t(plan, seed, other);
      libtorch::ModuleRecorder recorder(t.planned, {32, seed});
      t.model->recorder = &recorder;
      const std::string text = error_message<std::invalid_argument>(
          [&] { static_cast<void>(loss_of(t.model, ids("a" + std::to_string(seed)), ids("b"))); });
      CHECK((text == "no error") ==
            (std::string(order) == "layer.{}.query layer.{}.key layer.{}.value"));
      all += text;
    }
    return all;
  };
  CHECK_THAT(message("layer.{}.query layer.{}.key layer.{}.value"), ContainsSubstring("no error"));
  const std::string swapped = message("layer.{}.key layer.{}.query layer.{}.value");
  CHECK_THAT(swapped,
             ContainsSubstring("transformer.h.0.attn.c_attn.weight: its rows of layer.0.query "
                               "are not used as queries alone"));
  CHECK_THAT(message("layer.{}.query layer.{}.value layer.{}.key"),
             ContainsSubstring("its rows of layer.0.key are used as values"));
  message("layer.{}.value layer.{}.key layer.{}.query");
  message("layer.{}.key layer.{}.value layer.{}.query");
}

TEST_CASE("An evaluation between steps is not recorded") {
  const Plan plan = torch_plan("maximal-update", 32);
  const auto records_of = [&](bool evaluates) {
    Trained t(plan);
    torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, settings()));
    libtorch::ModuleRecorder recorder(t.planned, {32, 0});
    t.model->recorder = &recorder;
    for (int step = 0; step < 2; ++step) {
      if (evaluates) {
        const torch::NoGradGuard no_grad;
        static_cast<void>(t.model->forward(ids("other" + std::to_string(step))));
      }
      optimizer.zero_grad();
      loss_of(t.model, ids("inputs"), ids("targets")).backward();
      recorder.step(optimizer);
    }
    return recorder.records().all();
  };
  CHECK((records_of(true) == records_of(false)));
}

TEST_CASE("Updates of weights of 16 bits are left out, and listed") {
  Trained t(torch_plan("maximal-update", 32));
  t.model->to(torch::kBFloat16);
  torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, settings()));
  libtorch::ModuleRecorder recorder(t.planned, {32, 0});
  t.model->recorder = &recorder;
  optimizer.zero_grad();
  loss_of(t.model, ids("inputs"), ids("targets")).backward();
  recorder.step(optimizer);
  std::set<check::Signal> signals;
  for (const auto& [quantity, steps] : recorder.records().all()) signals.insert(quantity.signal);
  CHECK((signals ==
         std::set{check::Signal::value, check::Signal::gradient, check::Signal::parameter}));
  CHECK(recorder.unchecked().size() == t.planned.parameters.size());
  CHECK(recorder.unchecked().front() ==
        "transformer.wte.weight: updates are not recorded, as 16 bits round them");
}

TEST_CASE("Tensors that change between steps are listed") {
  const Plan plan = torch_plan("maximal-update", 32);
  for (const bool clamps : {true, false}) {
    Trained t(plan);
    torch::optim::AdamW optimizer(libtorch::param_groups(t.planned, settings()));
    libtorch::ModuleRecorder recorder(t.planned, {32, 0});
    t.model->recorder = &recorder;
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      loss_of(t.model, ids("inputs"), ids("targets")).backward();
      recorder.step(optimizer);
      const torch::NoGradGuard no_grad;
      if (clamps) t.model->transformer->wte->weight.clamp_(-0.001, 0.001);
    }
    const std::vector<std::string> none,
        one{"transformer.wte.weight: changed between steps, which updates do not show"};
    CHECK(recorder.unchecked() == (clamps ? one : none));
  }
}

TEST_CASE("What cannot be found out about query, key and value is listed") {
  const Plan plan = torch_plan("maximal-update", 32);
  const auto unchecked = [&](const Plan& of, const std::function<void(Trained&)>& change) {
    Trained t(of);
    change(t);
    libtorch::ModuleRecorder recorder(t.planned, {of.shape.d_model, 0});
    t.model->recorder = &recorder;
    static_cast<void>(t.model->forward(ids("a")));
    return recorder.unchecked();
  };
  CHECK(unchecked(plan, [](Trained&) {}).empty());
  Shape one_head = torch_shape(32);
  one_head.heads = one_head.kv_heads = 1;
  const auto single = unchecked(make_plan("maximal-update", {.model = one_head, .base = one_head}),
                                [](Trained&) {});
  REQUIRE(single.size() == 2);  // layers
  CHECK(single[0] ==
        "layer.0.query, key, value: query and key of a single head cannot be distinguished");
  const auto zero = unchecked(plan, [](Trained& t) {
    const torch::NoGradGuard no_grad;
    t.model->transformer->h->ptr<torch_gpt::BlockImpl>(1)->attn->c_proj->weight.zero_();
  });
  REQUIRE(zero.size() == 1);
  CHECK(zero[0] == "layer.1.query, key, value: their gradients are zero");

  Trained t(plan);
  // Tokens first, as in torch::nn::MultiheadAttention: the first token of each sequence hears from itself alone.
  const auto heads = [](const at::Tensor& part) {
    return part.view({sequences, tokens, 4, 8}).transpose(1, 2);
  };
  const at::Tensor& weight =
      t.model->transformer->h->ptr<torch_gpt::BlockImpl>(0)->attn->c_attn->weight;
  const auto parts = at::randn({sequences, tokens, 32}).matmul(weight.t()).chunk(3, -1);
  const at::Tensor scores = heads(parts[0]).matmul(heads(parts[1]).transpose(-2, -1));
  const at::Tensor later = at::ones({tokens, tokens}, at::kBool).triu(1);
  const at::Tensor output = scores.masked_fill(later, -INFINITY)
                                .softmax(-1)
                                .matmul(heads(parts[2]))
                                .transpose(1, 2)
                                .reshape({sequences, tokens, 32});
  libtorch::ModuleRecorder batch_first(t.planned, {32, 0}), tokens_first(t.planned, {32, 0});
  batch_first.activation("layer.0.attention.output", output);
  CHECK(batch_first.unchecked().empty());
  tokens_first.activation("layer.0.attention.output", output.transpose(0, 1));
  REQUIRE(tokens_first.unchecked().size() == 1);
  CHECK(tokens_first.unchecked()[0] ==
        "layer.0.query, key, value: the query has no gradient at the last token: is the output "
        "(batch, tokens, width)?");

  libtorch::ModuleRecorder recorder(t.planned, {32, 0});
  recorder.activation("layer.0.attention.output", at::ones({6, 32}).requires_grad_());
  CHECK(recorder.unchecked().at(0) ==
        "layer.0.query, key, value: the attention's output is [6, 32], not (batch, three or more "
        "tokens, width)");
}
