// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/messages/folded.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/optimizer.hpp"

namespace scalewise::check {

/// The settings that a live optimizer uses for one tensor, or the global values that the plan's factors multiply.
/// Units:    absolute; weight_decay in the plan's form
struct OptimizerSetting {
  std::string name;
  double rate = 0;
  double weight_decay = 0;
  double epsilon = 0;
};

/// Reads an optimizer back: one line for each tensor whose rate, decay or epsilon is not what the
/// plan says, for each that the plan does not know, and for each of the plan that was not found;
/// tensors that differ in the layer alone share one, see folded(). Empty when all is right. No measurement of activations sees decay, and epsilon only where it
/// dominates, so this is the check for them; run it after the first step of a scheduler too.
/// `globals`: of one optimizer, or of each under its name, such as "muon-original" and "adamw"
/// Equation: setting = global · the plan's factor
/// Accuracy: compares to 1e-5 relative, since optimizers may keep floats.
inline std::vector<std::string> check_optimizer(const Plan& plan,
                                                const std::vector<OptimizerSetting>& globals,
                                                const std::vector<OptimizerSetting>& live) {
  std::vector<std::string> wrong;
  std::set<std::string_view> optimizers, given;
  for (const Entry& entry : plan.entries)
    optimizers.insert(policy::optimizer_of(plan.optimizer, entry.group).name);
  for (const OptimizerSetting& global : globals) {
    if (!global.name.empty() && !optimizers.contains(global.name))
      wrong.push_back("global values of " + global.name + ": no tensor of the plan has it");
    if (!given.insert(global.name).second)
      wrong.push_back("global values of " + global.name + ": given twice");
    for (const double number : {global.rate, global.weight_decay, global.epsilon}) {
      if (!std::isfinite(number))
        wrong.push_back(fmt::format("global value = {}: expected a finite number", number));
    }
  }
  std::set<std::string> seen;
  for (const OptimizerSetting& setting : live) {
    if (!seen.insert(setting.name).second) {
      wrong.push_back(setting.name + ": given twice");
      continue;
    }
    const Entry* entry = nullptr;
    for (const Entry& known : plan.entries) {
      if (known.name == setting.name) entry = &known;
    }
    if (entry == nullptr) {
      wrong.push_back(setting.name + ": not in the plan");
      continue;
    }
    const std::string_view optimizer = policy::optimizer_of(plan.optimizer, entry->group).name;
    const auto global = std::find_if(globals.begin(), globals.end(), [&](const auto& of) {
      return globals.size() == 1 || of.name == optimizer;
    });
    if (global == globals.end()) {
      wrong.push_back(fmt::format("{}: no global values of {}", setting.name, optimizer));
      continue;
    }
    const auto compare = [&](const char* what, double value, double expected) {
      if (std::abs(value - expected) <= 1e-5 * std::abs(expected)) return;
      wrong.push_back(
          fmt::format("{}: {} = {:.6g}: expected {:.6g}", setting.name, what, value, expected));
    };
    compare("rate", setting.rate, global->rate * entry->learning_rate.value);
    compare("weight_decay", setting.weight_decay, global->weight_decay * entry->weight_decay.value);
    compare("epsilon", setting.epsilon, global->epsilon * entry->epsilon.value);
  }
  for (const Entry& entry : plan.entries) {
    if (!seen.contains(entry.name)) wrong.push_back(entry.name + ": not in the optimizer");
  }
  return messages::folded(wrong);
}

/// check_optimizer() for a plan of one optimizer, or of one set of global values for all.
inline std::vector<std::string> check_optimizer(const Plan& plan, const OptimizerSetting& global,
                                                const std::vector<OptimizerSetting>& live) {
  return check_optimizer(plan, std::vector{global}, live);
}

/// The same in the order of a matcher: what is asked, the plan, the global values.
/// Throws:   nothing: problems are returned.
template <class Globals>
std::vector<std::string> optimizer_problems(const std::vector<OptimizerSetting>& live,
                                            const Plan& plan, const Globals& globals) {
  return check_optimizer(plan, globals, live);
}

}  // namespace scalewise::check
