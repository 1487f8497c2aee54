// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Prints entries of a plan with fmt: plain, with two digits, in LaTeX, and in ASCII.

#include <fmt/core.h>

#include <scalewise/architecture/presets.hpp>
#include <scalewise/format.hpp>
#include <scalewise/scalewise.hpp>

int main() {
  using namespace scalewise;
  const Plan plan = make_plan<NeuralTangent, adamw>(preset_shape("gpt2"));
  const Entry& down = plan.at("layer.0.mlp_down");
  fmt::print("{}\n", down);
  fmt::print("{:.2}\n", down.learning_rate);
  fmt::print("{:latex}\n", down.learning_rate);
  fmt::print("{:ascii}\n", down.learning_rate);
}
