// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Whether records are judged as those of the model that they were made with.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "check/experiment.hpp"
#include "scalewise/files/inputs.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::experiment {

/// Options of the rule and the model whose values in a file of records are not those given now, as
/// "--depth 1 (here 3)". Files of other programs have none of these inputs.
inline std::vector<std::string> other_model(const Experiment& e, const files::Inputs& recorded,
                                            const files::Inputs& given) {
  constexpr std::array<std::string_view, 17> options{
      "--rule",   "--optimizer", "--set",       "--axis",      "--base", "--width",
      "--depth",  "--head-dim",  "--heads",     "--placement", "--norm", "--activation",
      "--rotary", "--parallel",  "--score-cap", "--logit-cap", "--gates"};
  std::vector<std::string> differ;
  for (const std::string_view option : options) {
    const bool unused = (option == "--width" && widens(e)) ||
                        (option == "--depth" && e.axis == Axis::depth) ||
                        (option == "--heads" && e.head_dim > 0);
    if (unused) continue;
    const auto of = [&](const files::Inputs& inputs) {
      return std::find_if(inputs.begin(), inputs.end(),
                          [&](const files::Setting& input) { return input.name == option; });
    };
    const auto then = of(recorded), now = of(given);
    if (then == recorded.end() || now == given.end() || then->value == now->value) continue;
    differ.push_back(std::string(option) + " " + messages::printable(then->value) + " (here " +
                     messages::printable(now->value) + ")");
  }
  return differ;
}

}  // namespace scalewise::experiment
