// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A run for tune: trains by the plan in a file, and prints the loss as JSON.
//
//   tuned_loop PLAN SEED STEPS

#include <cstdlib>
#include <iostream>
#include <scalewise/check.hpp>

#include "training.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const scalewise::Plan plan = scalewise::check::read_plan_file(argv[1]).plan;
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const int steps = std::atoi(argv[3]);
  own::Model model = own::started(plan, random, false);
  float loss = 0;
  for (int step = 1; step <= steps; ++step) {
    own::Symbols symbols(own::examples), next(own::examples);
    for (own::Size r = 0; r < own::examples; ++r) {
      symbols[r] = random() % own::vocab;
      next[r] = (7 * symbols[r] + 3) % own::vocab;
    }
    loss = own::forward_backward(model, symbols, next);
    for (own::Tensor* t : {&model.embedding, &model.up, &model.down, &model.head}) adam(*t, step);
  }
  std::cout << "{\"loss\": " << loss << "}\n";
}
