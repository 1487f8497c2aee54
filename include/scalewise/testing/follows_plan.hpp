// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/testing/matcher.hpp"

namespace scalewise::testing {

/// Matches an optimizer that uses the rate, decay and epsilon of the plan for every tensor and holds each once.
/// The comparison is optimizer_problems(), for any of three: settings that a program has
/// read from its own optimizer (check::OptimizerSetting), or an optimizer of LibTorch.
/// Units:    `global`: the values that the plan's factors multiply
template <class AnyPlan, class Settings>
class FollowsPlan : public Matcher<FollowsPlan<AnyPlan, Settings>> {
 public:
  FollowsPlan(AnyPlan plan, Settings global) : plan_(std::move(plan)), global_(std::move(global)) {}

  /// A line per problem; empty when there is none.
  /// Throws:   as optimizer_problems().
  template <class Optimizer>
  std::string problem(const Optimizer& optimizer) const {
    std::string text;
    for (const std::string& line : optimizer_problems(optimizer, plan_, global_)) {
      text += (text.empty() ? "" : "\n") + line;
    }
    return text;
  }

  std::string expectation() const { return "follows the plan"; }

 private:
  AnyPlan plan_;
  Settings global_;
};

}  // namespace scalewise::testing
