// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The reference transformer takes its shape, its initial values and its rates from a plan.

#include <cmath>
#include <iomanip>
#include <iostream>
#include <scalewise/nn/initialize.hpp>
#include <scalewise/nn/optimizer.hpp>
#include <scalewise/nn/transformer.hpp>
#include <scalewise/scalewise.hpp>
#include <string>
#include <string_view>

int main() {
  using namespace scalewise;
  Shape shape;
  shape.d_model = 32;
  shape.depth = 2;
  shape.heads = 4;
  shape.context = 16;
  shape.vocab = 128;
  const Plan plan = make_plan<NeuralTangent, adamw>(shape);

  nn::Transformer<float> model(plan, nn::Config{});
  nn::initialize(model.parameters(), plan, 1);
  nn::PlannedOptimizer<float> optimizer(plan, {.rate = 1});

  const std::string text = "to be or not to be that is the question ";
  nn::Batch<float> batch;
  batch.size = 1;
  for (std::size_t i = 0; i < 16; ++i) {
    batch.tokens.push_back(text[i]);
    batch.targets.push_back(text[i + 1]);
  }
  std::cout << std::fixed << std::setprecision(2);
  model.observe([](std::string_view name, nn::Observed quantity, const auto& values) {
    if (quantity != nn::Observed::value || !name.ends_with("mlp.stream")) return;
    std::cout << name << ": rms " << values.norm() / std::sqrt(values.size()) << '\n';
  });
  model.loss(batch);
  model.observe({});

  for (int step = 0; step < 20; ++step) {
    const double loss = model.loss_and_gradient(batch);
    optimizer.step(model.parameters());
    if (step % 5 == 0) std::cout << "step " << step << ": " << loss << " nats\n";
  }
}
