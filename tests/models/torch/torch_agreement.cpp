// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// torch_agreement CASE float|double OUTFILE: builds the model of a case, runs one batch, and writes
// the plan, the values, the gradients, the logits and the loss as JSON, for torch_agreement.py.
// torch_agreement list: prints the names of the cases.
// Exit code: 0 done, 2 wrong arguments or a case that cannot be built.

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "instances/transformer.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace {

using nlohmann::ordered_json;
using scalewise::Activation;
using scalewise::adamw;
using scalewise::NormPlacement;
using scalewise::Plan;
using scalewise::Shape;
using scalewise::nn::Config;
using scalewise::nn::Norm;
using scalewise::numeric::RandomStream;

struct Case {
  std::string name;
  std::string rule;
  Shape shape;
  Config config = {};
  std::optional<Shape> base = {};
  std::vector<scalewise::Parameter> parameters = {};
  bool every_number = false;  // each number of the plan replaced by one of its own
  Eigen::Index batch = 3;
  Eigen::Index tokens = 7;
  Eigen::Index source = 5;  // tokens of the encoder
};

constexpr std::uint64_t seed = 20;

// ---- shapes -------------------------------------------------------------------------------------

/// One stack with learned positions, biases and a tied head. Context is longer than any sequence.
Shape small() {
  Shape shape{.d_model = 24, .depth = 2, .heads = 3, .d_ff = 40, .context = 60, .vocab = 29};
  shape.tied_head = true;
  return shape;
}

/// More rows, tokens and hidden features than a tile of any loop has.
Shape wider_than_tiles() {
  Shape shape = small();
  shape.vocab = 150;
  shape.d_ff = 136;
  return shape;
}

Shape llama() {
  Shape shape = small();
  shape.d_model = 20;
  shape.heads = 6;
  shape.kv_heads = 2;
  shape.head_dim = 8;
  shape.tied_head = false;
  shape.gated_mlp = true;
  shape.biases = false;
  shape.norm_bias = false;
  shape.learned_positions = false;
  return shape;
}

/// Norms before and after each branch, and of each head's queries and keys as in Gemma 3.
Shape gemma2() {
  Shape shape = llama();
  shape.tied_head = true;
  shape.branch_norm = true;
  shape.qk_norm = scalewise::QkNorm::head;
  return shape;
}

Shape full_qk_norm() {
  Shape shape = llama();
  shape.qk_norm = scalewise::QkNorm::full;
  shape.attention_biases = scalewise::AttentionBiases::qkv;
  return shape;
}

Shape bert() {
  Shape shape = small();
  shape.segments = 2;
  shape.head_bias = true;
  shape.embedding_norm = true;
  shape.final_norm = false;
  return shape;
}

Shape encoder_decoder(bool post) {
  Shape shape = small();
  shape.encoder_depth = 3;
  shape.embedding_norm = post;
  shape.final_norm = !post;
  return shape;
}

Shape vit() {
  Shape shape = small();
  shape.input = scalewise::Input::patch;
  shape.patch_dim = 12;
  shape.classes = 10;
  shape.tied_head = false;
  return shape;
}

Shape with_experts(Shape shape, long experts, long active) {
  shape.experts = experts;
  shape.experts_per_token = active;
  shape.expert_ff = 24;
  return shape;
}

Shape untied(Shape shape) {
  shape.tied_head = false;
  return shape;
}

Shape deep(Shape shape, long depth) {
  shape.depth = depth;
  return shape;
}

/// The same model at the size that was tuned.
Shape base_of(Shape shape) {
  shape.d_model /= 2;
  shape.head_dim = 4;
  shape.d_ff = 12;
  shape.depth = (shape.depth + 1) / 2;
  return shape;
}

/// Norms without gain and bias, and one key head for all queries.
Shape plain_norms() {
  Shape shape = small();
  shape.kv_heads = 1;
  shape.norm_gain = false;
  shape.norm_bias = false;
  shape.embedding_norm = true;
  return shape;
}

Shape two_stacks_with_everything() {
  Shape shape = llama();
  shape.encoder_depth = 2;
  shape.biases = true;
  shape.norm_bias = true;
  shape.learned_positions = true;
  shape.segments = 3;
  shape.head_bias = true;
  shape.embedding_norm = true;
  shape.residual_gain = scalewise::ResidualGain::channel;
  return shape;
}

Shape one_stack_with_everything() {
  Shape shape = two_stacks_with_everything();
  shape.encoder_depth = 0;
  shape.tied_head = true;
  shape.residual_gain = scalewise::ResidualGain::scalar;
  return shape;
}

// ---- cases --------------------------------------------------------------------------------------

std::vector<Case> cases() {
  const Config post{.placement = NormPlacement::post};
  const Config two_way{.placement = NormPlacement::post, .causal = false};
  const Config two_way_relu{
      .placement = NormPlacement::post, .activation = Activation::relu, .causal = false};
  const Config llama_like{
      .norm = Norm::rms, .activation = Activation::silu, .rotary = true, .norm_epsilon = 1e-3};
  const Config vision{.activation = Activation::relu, .causal = false, .norm_epsilon = 1e-2};
  const Config normalized{.activation = Activation::silu, .rotary = true};
  const Config post_rms{.placement = NormPlacement::post,
                        .norm = Norm::rms,
                        .activation = Activation::relu,
                        .rotary = true,
                        .norm_epsilon = 1e-2};
  const Shape table9 = untied(wider_than_tiles());
  const std::vector<scalewise::Parameter> deep_scale_lm{{"dropout", 0.1},
                                                        {"input_correlation", 0.2}};
  return {
      {.name = "gpt", .rule = "standard", .shape = wider_than_tiles(), .tokens = 47},
      {.name = "llama", .rule = "standard", .shape = llama(), .config = llama_like},
      {.name = "bert", .rule = "bert", .shape = bert(), .config = two_way},
      {.name = "encoder_decoder_pre", .rule = "standard", .shape = encoder_decoder(false)},
      {.name = "encoder_decoder_post",
       .rule = "standard",
       .shape = encoder_decoder(true),
       .config = post},
      {.name = "encoder_decoder_deep_norm",
       .rule = "deep-norm",
       .shape = encoder_decoder(true),
       .config = post,
       .tokens = 4,
       .source = 9},
      {.name = "switch",
       .rule = "standard",
       .shape = with_experts(small(), 4, 1),
       .config = {.activation = Activation::relu},
       .tokens = 47},
      {.name = "mixtral",
       .rule = "standard",
       .shape = with_experts(llama(), 8, 2),
       .config = {.norm = Norm::rms,
                  .activation = Activation::silu,
                  .rotary = true,
                  .gates = scalewise::nn::Gates::renormalized}},
      {.name = "experts_sigmoid",
       .rule = "standard",
       .shape = with_experts(llama(), 6, 3),
       .config = {.gates = scalewise::nn::Gates::sigmoid},
       .every_number = true},
      {.name = "gpt_neox",
       .rule = "standard",
       .shape = untied(wider_than_tiles()),
       .config = {.parallel = true},
       .every_number = true},
      {.name = "gemma2",
       .rule = "standard",
       .shape = gemma2(),
       .config = {.norm = Norm::rms, .rotary = true, .score_cap = 0.5, .logit_cap = 0.3}},
      {.name = "olmo2_norms",
       .rule = "standard",
       .shape = full_qk_norm(),
       .config = {.norm = Norm::rms, .rotary = true}},
      {.name = "ngpt", .rule = "ngpt", .shape = small(), .config = normalized},
      {.name = "nu_gpt",
       .rule = "nu-gpt",
       .shape = deep(small(), 4),
       .config = normalized,
       .base = base_of(deep(small(), 4))},
      {.name = "vit", .rule = "he", .shape = vit(), .config = vision},
      {.name = "deep_norm", .rule = "deep-norm", .shape = deep(bert(), 4), .config = post},
      {.name = "deep_scale_lm",
       .rule = "deep-scale-lm",
       .shape = deep(small(), 4),
       .config = {.activation = Activation::relu},
       .parameters = deep_scale_lm},
      {.name = "deep_scale_lm_post",
       .rule = "deep-scale-lm",
       .shape = deep(bert(), 4),
       .config = two_way_relu,
       .parameters = deep_scale_lm},
      {.name = "layer_scale", .rule = "layer-scale", .shape = small()},
      {.name = "rezero", .rule = "rezero", .shape = small()},
      {.name = "neural_tangent", .rule = "neural-tangent", .shape = vit(), .config = vision},
      {.name = "table_9",
       .rule = "maximal-update",
       .shape = table9,
       .base = base_of(table9),
       .parameters = {{"table", 9}},
       .tokens = 50},
      {.name = "table_9_tied",
       .rule = "maximal-update",
       .shape = small(),
       .base = base_of(small()),
       .parameters = {{"table", 9}}},
      {.name = "xavier", .rule = "xavier", .shape = untied(small())},
      {.name = "complete_p_30_layers",
       .rule = "complete-p",
       .shape = deep(small(), 30),
       .base = base_of(deep(small(), 6))},
      {.name = "deep_norm_30_layers",
       .rule = "deep-norm",
       .shape = deep(llama(), 30),
       .config = post_rms},
      {.name = "plain_norms",
       .rule = "standard",
       .shape = plain_norms(),
       .config = {.placement = NormPlacement::post, .norm_epsilon = 1e-2}},
      {.name = "every_number_pre",
       .rule = "standard",
       .shape = two_stacks_with_everything(),
       .config = {.causal = false, .rotary = true},  // a decoder stays causal
       .every_number = true},
      {.name = "every_number_post",
       .rule = "standard",
       .shape = one_stack_with_everything(),
       .config = post_rms,
       .every_number = true},
      {.name = "every_number_patches",
       .rule = "standard",
       .shape = vit(),
       .config = vision,
       .every_number = true},
      {.name = "every_number_normalized",
       .rule = "ngpt",
       .shape = small(),
       .config = normalized,
       .every_number = true},
  };
}

// ---- model and batch ----------------------------------------------------------------------------

/// Gives every multiplier of a plan a value of its own, so that none can stand in for another.
void replace_every_number(Plan& plan) {
  RandomStream stream(seed, "every number");
  const auto near = [&](double value) { return value * (0.6 + 0.8 * stream.uniform()); };
  for (scalewise::Entry& entry : plan.entries) {
    entry.multiplier.value = near(entry.multiplier.value);
    if (entry.group == scalewise::Group::token_embedding ||
        entry.group == scalewise::Group::patch_embedding) {
      plan.model.embedding_multiplier.value = entry.multiplier.value;
    }
  }
  plan.model.attention_scale.value = near(plan.model.attention_scale.value);
  plan.model.logit_multiplier.value = near(plan.model.logit_multiplier.value);
  for (scalewise::Residual& residual : plan.model.residuals) {
    residual.skip.value = near(residual.skip.value);
    residual.branch.value = near(residual.branch.value);
  }
}

Plan plan_of(const Case& test) {
  Plan plan = scalewise::make_plan(
      test.rule, {.model = test.shape, .base = test.base, .parameters = test.parameters});
  if (test.every_number) replace_every_number(plan);
  return plan;
}

/// Moves gains, biases and rescalers away from where they start, so that none acts as 1 or 0, and
/// makes every other step negative.
template <class Scalar>
void shake(scalewise::nn::Parameters<Scalar>& parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto value = parameters.value(i);
    const bool zero = value.isZero(0);
    if (value.rows() > 1 && !zero) continue;  // a matrix, already random
    RandomStream stream(seed, "shake " + parameters.name(i));
    for (Eigen::Index k = 0; k < value.size(); ++k) {
      Scalar& x = value.data()[k];
      const double z = stream.normal();
      x = static_cast<Scalar>(zero ? 0.1 * z : static_cast<double>(x) * (1 + 0.2 * z));
      if (parameters.name(i).ends_with("_step") && k % 2 == 1) x = -std::abs(x);
    }
  }
}

std::vector<int> draw_ids(const std::string& name, Eigen::Index count, long classes) {
  RandomStream stream(seed, name);
  std::vector<int> ids;
  for (Eigen::Index i = 0; i < count; ++i) {
    ids.push_back(static_cast<int>(stream.bits() % static_cast<std::uint64_t>(classes)));
  }
  return ids;
}

template <class Scalar>
scalewise::nn::Batch<Scalar> batch_of(const Case& test, const Shape& shape) {
  scalewise::nn::Batch<Scalar> batch;
  batch.size = test.batch;
  const Eigen::Index rows = test.batch * test.tokens;
  if (shape.input == scalewise::Input::patch) {
    RandomStream stream(seed, "patches");
    batch.patches.resize(rows, shape.patch_dim);
    for (Eigen::Index i = 0; i < batch.patches.size(); ++i) {
      batch.patches.data()[i] = static_cast<Scalar>(stream.normal());
    }
    batch.targets = draw_ids("targets", test.batch, shape.classes);
    return batch;
  }
  batch.tokens = draw_ids("tokens", rows, shape.vocab);
  if (shape.encoder_depth > 0) {
    batch.source = draw_ids("source", test.batch * test.source, shape.vocab);
  }
  batch.targets = draw_ids("targets", rows, shape.vocab);
  return batch;
}

// ---- JSON ---------------------------------------------------------------------------------------

template <class M>
ordered_json numbers(const M& matrix) {
  ordered_json list = ordered_json::array();
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    for (Eigen::Index c = 0; c < matrix.cols(); ++c) {
      list.push_back(static_cast<double>(matrix(r, c)));
    }
  }
  return list;
}

ordered_json config_json(const Config& config) {
  const char* const activation = config.activation == Activation::relu   ? "relu"
                                 : config.activation == Activation::gelu ? "gelu"
                                                                         : "silu";
  return {{"placement", config.placement == NormPlacement::pre ? "pre" : "post"},
          {"norm", config.norm == Norm::layer ? "layer" : "rms"},
          {"activation", activation},
          {"causal", config.causal},
          {"rotary", config.rotary},
          {"gates", word(scalewise::nn::gates_words, config.gates)},
          {"parallel", config.parallel},
          {"score_cap", config.score_cap},
          {"logit_cap", config.logit_cap},
          {"norm_epsilon", config.norm_epsilon}};
}

template <class Scalar>
ordered_json run(const Case& test) {
  const Plan plan = plan_of(test);
  scalewise::nn::Transformer<Scalar> model(plan, test.config);
  auto& parameters = model.parameters();
  scalewise::nn::initialize(parameters, plan, seed, scalewise::nn::BaseDeviation::uniform(0.2));
  shake(parameters);
  Case before = test;  // a batch of another size first: nothing of it may be left
  before.batch += 2;
  before.tokens -= 1;
  before.source += 1;
  model.loss_and_gradient(batch_of<Scalar>(before, plan.shape));
  const auto batch = batch_of<Scalar>(test, plan.shape);
  const double loss = model.loss_and_gradient(batch);

  ordered_json tensors = ordered_json::array();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto value = parameters.value(i);
    tensors.push_back({{"name", parameters.name(i)},
                       {"group", std::string(to_string(plan.entries[i].group))},
                       {"rows", value.rows()},
                       {"columns", value.cols()},
                       {"multiplier", plan.entries[i].multiplier.value},
                       {"values", numbers(value)},
                       {"gradient", numbers(parameters.gradient(i))}});
  }
  const ordered_json planned = scalewise::to_json(plan);
  return {{"case", test.name},
          {"shape", planned.at("shape")},
          {"model", planned.at("model")},
          {"config", config_json(test.config)},
          {"tensors", tensors},
          {"batch",
           {{"size", batch.size},
            {"tokens", batch.tokens},
            {"source", batch.source},
            {"patches", numbers(batch.patches)},
            {"targets", batch.targets}}},
          {"logits", numbers(model.logits())},
          {"loss", loss}};
}

Case find_case(const std::string& name) {
  for (const Case& test : cases()) {
    if (test.name == name) return test;
  }
  throw std::invalid_argument("no case is called " + name);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments == std::vector<std::string>{"list"}) {
      for (const Case& test : cases()) std::cout << test.name << '\n';
      return 0;
    }
    if (arguments.size() != 3 || (arguments[1] != "float" && arguments[1] != "double")) {
      throw std::invalid_argument("usage: torch_agreement list | CASE float|double OUTFILE");
    }
    const Case test = find_case(arguments[0]);
    std::ofstream file(arguments[2]);
    file << (arguments[1] == "float" ? run<float>(test) : run<double>(test)) << '\n';
    if (!file.flush()) throw std::runtime_error("cannot write " + arguments[2]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "torch_agreement: " << error.what() << '\n';
    return 2;
  }
}
