// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/plan_json.hpp"

namespace scalewise {

namespace io {

/// Name and major version of a named plan's JSON; docs/dialects.md writes it down.
inline constexpr std::string_view named_plan_schema = "scalewise.named_plan/1";

}  // namespace io

namespace detail {

inline Json runs_json(const dialect::AxisRuns& axis) {
  Json runs = Json::array();
  for (const dialect::IndexRun& run : axis.runs) {
    runs.push_back(run.step == 1 ? Json{run.begin, run.count}
                                 : Json{run.begin, run.count, run.step});
  }
  return {{"axis", axis.axis}, {"runs", runs}};
}

inline Json axes_json(const std::vector<dialect::AxisRuns>& axes) {
  Json json = Json::array();
  for (const dialect::AxisRuns& axis : axes) json.push_back(runs_json(axis));
  return json;
}

inline Json aliases_json(const std::vector<dialect::TensorAlias>& aliases) {
  Json json = Json::array();
  for (const dialect::TensorAlias& alias : aliases) {
    json.push_back({{"name", alias.name}, {"of", alias.of}});
  }
  return json;
}

}  // namespace detail

/// A plan together with the tensors of a code base.
inline nlohmann::ordered_json to_json(const dialect::NamedPlan& named) {
  detail::Json tensors = detail::Json::array();
  for (std::size_t i = 0; i < named.assignment.tensors.size(); ++i) {
    const dialect::OwnerTensor& tensor = named.assignment.tensors[i];
    const dialect::TensorFactors& factors = named.factors[i];
    detail::Json parts = detail::Json::array();
    for (const dialect::OwnedPart& part : tensor.parts) {
      parts.push_back({{"entry", part.entry}, {"select", detail::axes_json(part.select)}});
    }
    detail::Json json = {{"name", tensor.name},
                         {"shape", tensor.shape},
                         {"transposed", tensor.transposed},
                         {"parts", parts},
                         {"learning_rate", factors.learning_rate},
                         {"weight_decay", factors.weight_decay},
                         {"epsilon", factors.epsilon}};
    if (!tensor.padding.empty()) json["padding"] = detail::axes_json(tensor.padding);
    tensors.push_back(std::move(json));
  }
  detail::Json json = {{"schema", io::named_plan_schema},
                       {"plan", to_json(named.plan)},
                       {"dialect", named.assignment.dialect},
                       {"prefix", named.assignment.prefix},
                       {"tensors", tensors},
                       {"aliases", detail::aliases_json(named.assignment.aliases)},
                       {"ignored", named.assignment.buffers},
                       {"unplanned", named.assignment.unplanned}};
  if (!named.assignment.alternatives.empty()) {
    json["alternatives"] = detail::aliases_json(named.assignment.alternatives);
  }
  return json;
}

}  // namespace scalewise
