// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/dialect/shape_fit.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/plan_table.hpp"
#include "scalewise/io/table.hpp"
#include "scalewise/messages/sizes_text.hpp"

namespace scalewise {

/// A plan by the tensors of a code base: one row per part of each, or per part of all tensors whose names
/// differ in the layer, with the range of their numbers.
inline Table named_table(const dialect::NamedPlan& named, bool layers) {
  struct Rows {
    const dialect::OwnerTensor* tensor;
    std::string name;
    std::vector<std::vector<const Entry*>> parts;
  };
  const auto entries = dialect::entries_by_name(named.plan);
  const auto label = [&](const Entry& entry) {
    return detail::without_layer(scalewise::detail::name_of(named.plan, entry));
  };
  std::vector<Rows> all;
  std::map<std::string, std::size_t> first;
  for (const dialect::OwnerTensor& tensor : named.assignment.tensors) {
    const std::string name = layers ? tensor.name : io::name_of_any_layer(tensor.name);
    const auto [at, is_first] = first.emplace(name, all.size());
    if (is_first) all.push_back({&tensor, name, {}});
    Rows& rows = all[at->second];
    std::map<std::string, std::size_t> kinds;  // of a slab: all its layers
    for (const dialect::OwnedPart& part : tensor.parts) {
      const Entry* entry = entries.at(part.entry);
      const std::size_t kind = kinds.emplace(label(*entry), kinds.size()).first->second;
      if (kind >= rows.parts.size()) rows.parts.emplace_back();
      rows.parts[kind].push_back(entry);
    }
  }
  Table table{named.assignment.dialect + ": every tensor with the entries of the plan in it",
              {"tensor", "stored as", "entry", "init variance", "init mean", "multiplier",
               "learning rate", "weight decay", "epsilon"},
              {}};
  for (const Rows& rows : all) {
    std::string name = rows.name;
    std::string shape = messages::sizes_text(rows.tensor->shape);
    for (const std::vector<const Entry*>& part : rows.parts) {
      table.rows.push_back({std::exchange(name, ""), std::exchange(shape, ""), label(*part.front()),
                            detail::cell(table, part, &Entry::init_variance),
                            detail::cell(table, part, &Entry::init_mean),
                            detail::cell(table, part, &Entry::multiplier),
                            detail::cell(table, part, &Entry::learning_rate),
                            detail::cell(table, part, &Entry::weight_decay),
                            detail::cell(table, part, &Entry::epsilon)});
    }
  }
  return table;
}

/// A plan by the tensors of a code base, for programs: a row per part of each, with all digits, in the columns of
/// flat_table() of plans.
inline Table flat_table(const dialect::NamedPlan& named) {
  Table table{{}, {"tensor", "stored_as"}, {}};
  for (const auto& [column, text] : detail::flat_row("", {})) table.header.push_back(column);
  const auto entries = dialect::entries_by_name(named.plan);
  for (const dialect::OwnerTensor& tensor : named.assignment.tensors) {
    for (const dialect::OwnedPart& part : tensor.parts) {
      auto& row = table.rows.emplace_back();
      row = {tensor.name, messages::sizes_text(tensor.shape)};
      for (const auto& [column, text] :
           detail::flat_row(named.plan.rule, *entries.at(part.entry))) {
        row.push_back(text);
      }
    }
  }
  return table;
}

}  // namespace scalewise
