// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The plan of GPT-2 XL under maximal update, with rates that were tuned on GPT-2 small.

#include <iostream>
#include <scalewise/scalewise.hpp>

int main() {
  using namespace scalewise;
  const Plan plan =
      make_plan(MaximalUpdate{}, {.model = preset_shape("gpt2-xl"), .base = preset_shape("gpt2")});
  for (const char* name : {"token_embedding", "layer.0.query", "layer.0.mlp_down"}) {
    const Entry& tensor = plan.at(name);
    std::cout << name << ": variance x " << tensor.init_variance.value << " ("
              << tensor.init_variance.formula() << "), rate x " << tensor.learning_rate.value << " ("
              << tensor.learning_rate.formula() << ")\n";
  }
  std::cout << "logits x " << plan.model.logit_multiplier.value << " ("
            << plan.model.logit_multiplier.formula() << ")\n";
}
