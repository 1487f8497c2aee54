// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How much of the gradient reaches each layer of a post-norm transformer of 192 layers, under two rules: predicted from
// the plan, and measured in the untrained model.

#include <fmt/core.h>

#include <functional>
#include <map>
#include <random>
#include <scalewise/nn.hpp>
#include <scalewise/scalewise.hpp>
#include <scalewise/theory.hpp>
#include <string>
#include <string_view>

namespace {

using namespace scalewise;

constexpr int vocab = 16, length = 32, layers = 192;
constexpr double dropout = 0.1;

Shape shape_of_model() {
  Shape shape;
  shape.d_model = 64;
  shape.depth = layers;
  shape.heads = 4;
  shape.context = length;
  shape.vocab = vocab;
  shape.activation = Activation::relu;
  return shape;
}

/// Sequences of random symbols.
nn::Batch<float> batch_of_symbols() {
  std::mt19937 random(1);
  nn::Batch<float> batch;
  batch.size = 4;
  for (int i = 0; i < batch.size * length; ++i) {
    batch.tokens.push_back(static_cast<int>(random() % vocab));
    batch.targets.push_back(static_cast<int>(random() % vocab));
  }
  return batch;
}

propagation::Profile predicted(const Plan& plan) {
  propagation::Conditions conditions;
  conditions.placement = NormPlacement::post;
  conditions.length = length;
  conditions.dropout = dropout;
  return propagation::predict(plan, conditions, propagation::Data{.repeats = 1.0 / vocab});
}

/// The squared norm of the gradient after each layer, by name.
std::map<std::string, double> measured(const Plan& plan) {
  nn::Config config;
  config.placement = NormPlacement::post;
  config.activation = Activation::relu;
  config.causal = false;
  config.dropout = dropout;
  nn::Transformer<float> model(plan, config);
  nn::initialize(model.parameters(), plan, 1);
  std::map<std::string, double> gradients;
  model.observe([&](std::string_view name, nn::Observed quantity, const auto& values) {
    if (quantity != nn::Observed::gradient || !name.ends_with("mlp.stream")) return;
    gradients[std::string(name)] = values.squaredNorm();
  });
  model.loss_and_gradient(batch_of_symbols());
  return gradients;
}

void show(const Plan& plan) {
  const propagation::Profile profile = predicted(plan);
  const std::map<std::string, double> gradients = measured(plan);
  const auto after = [&](int layer) {
    return gradients.at(fmt::format("layer.{}.mlp.stream", layer - 1));
  };
  fmt::print("{}\n  after layer   gradient, predicted   measured\n", plan.rule);
  for (const int layer : {layers, layers * 3 / 4, layers / 2, layers / 4, 1}) {
    const double variance = profile.gradient_at(static_cast<std::size_t>(layer)).variance;
    fmt::print("  {:11}   {:19.2g}   {:8.2g}\n", layer,
               variance / profile.gradient_at(layers).variance, after(layer) / after(layers));
  }
  fmt::print("  correlation of tokens after the last layer: {:.2f}\n",
             profile.forward_at(layers).correlation());
}

}  // namespace

int main() {
  show(make_plan(Xavier{}, {.model = shape_of_model()}));
  DeepScaleLM rule;
  rule.dropout = dropout;
  rule.input_correlation = 0.5 / vocab;  // the mean over tables of tokens and positions
  show(make_plan(rule, {.model = shape_of_model()}));
}
