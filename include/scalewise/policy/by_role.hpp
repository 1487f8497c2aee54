// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "scalewise/policy/rule.hpp"

namespace scalewise::policy {

/// Requires that a rule gives all hidden matrices one row, and adds no gains of branches: a list of tensors does not
/// say which of them are queries or values, or such gains.
/// Throws:   InvalidInput for a rule that tells them apart or adds gains.
inline void require_by_role(const Rule& rule) {
  const auto cells = [&](Group group) {
    const Row row = rule.policy->row(group, {});
    std::vector<Scaling> all;
    for (const Optimizer& optimizer : rule.optimizers) {
      for_each_cell(row, optimizer, [&](const auto& cell) { all.push_back(cell.scaling); });
    }
    return row.stated ? all : std::vector<Scaling>{};
  };
  const std::vector<Scaling> hidden = cells(Group::hidden);
  const bool alike = std::all_of(architecture::group_table.begin(), architecture::group_table.end(),
                                 [&](const architecture::GroupInfo& info) {
                                   return info.role != Role::hidden ||
                                          architecture::is_of_experts(info.group) ||
                                          cells(info.group) == hidden;
                                 });
  const bool adds_gains = rule.policy->adapt(Shape{}).residual_gain != ResidualGain::none;
  if (alike && !hidden.empty() && !adds_gains) return;
  throw InvalidInput("rule", std::string(rule.id),
                     "a rule that is stated by role, such as complete-p",
                     std::string(adds_gains ? "it gives each branch a gain"
                                            : "it tells queries, values and other hidden matrices "
                                              "apart") +
                         "; give a --preset, or a --config");
}

}  // namespace scalewise::policy
