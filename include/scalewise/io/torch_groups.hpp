// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/plan/code_factors.hpp"

namespace scalewise {

/// Groups for any optimizer of PyTorch, as JSON: regular expressions of names, with factors on the
/// global learning rate, weight decay and epsilon, and the optimizer where it is another than the plan's; what the
/// model has to multiply besides is `left_to_multiply`.
inline std::string torch_groups(const dialect::NamedPlan& named) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::regex);
  for (const io::PatternGroup& group : patterns.groups) {
    nlohmann::ordered_json regexes = nlohmann::ordered_json::array();
    for (const io::NamePattern& pattern : group.patterns) {
      regexes.push_back(io::whole_name_regex(patterns.head, pattern));
    }
    groups.push_back({{"patterns", regexes},
                      {"tensors", group.tensors},
                      {"lr", group.factors.learning_rate},
                      {"weight_decay", io::factor_of_coupled_decay(named.plan, group.factors)},
                      {"eps", group.factors.epsilon}});
    if (group.factors.optimizer == named.plan.optimizer) continue;
    groups.back()["optimizer"] = group.factors.optimizer.name;
  }
  return nlohmann::ordered_json{{"schema", "scalewise.torch_groups/1"},
                                {"rule", named.plan.rule},
                                {"optimizer", named.plan.optimizer.name},
                                {"dialect", named.assignment.dialect},
                                {"weight_decay", io::coupled_decay(named.plan)},
                                {"left_to_multiply", plan::left_to_multiply(named.plan)},
                                {"groups", groups}}
             .dump(1) +
         "\n";
}

}  // namespace scalewise
