// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Threads that make and train their first models at the same time, under the thread sanitizer, which
// ends the program where two of them write to one place.

#include <thread>
#include <vector>

#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/transformer.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/policy/gpt2.hpp"
#include "support/small_shapes.hpp"

int main() {
  using namespace scalewise;
  const Plan plan = make_plan(Gpt2{}, {.model = test::token_shape()});
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      nn::Transformer<float> model(plan, {});
      nn::initialize(model.parameters(), plan, 1);
      nn::Batch<float> batch;
      batch.size = 1;
      batch.tokens = {0, 1, 2, 3};
      batch.targets = {1, 2, 3, 4};
      model.loss_and_gradient(batch);
    });
  }
}
