// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Small models as lists of tensors, for tests of what two sizes of them say.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "scalewise/architecture/from_descriptions.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "support/error_message.hpp"

namespace scalewise::test::described {

struct Given {
  std::string name;
  TensorKind kind;
  std::string axes;
  std::vector<long> sizes;
  std::string tied_to = {};
};

inline ModelDescription description(const std::vector<Given>& rows) {
  ModelDescription model;
  for (const Given& row : rows) {
    model.tensors.push_back({row.name, row.kind, row.axes, row.sizes, row.tied_to});
  }
  return model;
}

/// Blocks with a router and four experts side by side.
inline ModelDescription mixture(long n, long layers) {
  std::vector<Given> rows{{"embed.weight", TensorKind::embedding, "io", {100, n}}};
  for (long layer = 0; layer < layers; ++layer) {
    const std::string at = "blocks." + std::to_string(layer) + ".";
    rows.push_back({at + "norm.weight", TensorKind::gain, "o", {n}});
    rows.push_back({at + "router.weight", TensorKind::linear, "oi", {4, n}});
    rows.push_back({at + "experts.up", TensorKind::linear, "eoi", {4, 2 * n, n}});
    rows.push_back({at + "experts.down", TensorKind::linear, "eoi", {4, n, 2 * n}});
  }
  rows.push_back({"norm.weight", TensorKind::gain, "o", {n}});
  rows.push_back({"head.weight", TensorKind::linear, "oi", {100, n}, "embed.weight"});
  return description(rows);
}

inline Plan planned(const DescribedModel& model, const std::string& rule,
                    const Optimizer& optimizer = adamw) {
  return make_plan(
      rule,
      {.model = model.shape, .base = model.base, .optimizer = optimizer, .extras = model.tensors});
}

inline const Entry& entry(const Plan& plan, const std::string& name) {
  for (const Entry& one : plan.entries) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

inline std::string refusal(const ModelDescription& target, const ModelDescription& base,
                           const std::vector<architecture::RoleOverride>& roles = {}) {
  return test::error_message([&] { static_cast<void>(from_descriptions(target, base, roles)); });
}

}  // namespace scalewise::test::described
