// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Models of configurations, by their shape or, where their type has none, by their tensors, for the programs and for
// the playground: no files, no output.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planning/plans.hpp"
#include "scalewise/architecture/described_model.hpp"
#include "scalewise/io/model_table_reader.hpp"

namespace scalewise::tools {

/// A configuration, and what messages call it.
struct NamedConfig {
  nlohmann::ordered_json json;
  std::string name;
};

/// A model that is given by its tensors, and its base.
struct DescribedSizes {
  io::ConfigDescription target, base;
};

/// That of a preset that no shape describes; empty for any other.
std::optional<NamedConfig> config_of_preset(const std::string& preset);

/// The model of a preset with a shape; empty for no preset.
/// Throws:   InvalidInput.
std::optional<GivenModel> model_of_preset(const std::string& preset);

/// Whether its type has no shape, so that it can only be described by its tensors.
bool has_no_shape(const NamedConfig& config);

/// The model of a configuration that has a shape. `say` gets its notes.
/// Throws:   InvalidInput.
GivenModel given_config(const NamedConfig& config, const Say& say);

/// That of a configuration whose type has no shape, with `base`, or else one like it by --base-width and its like.
/// Throws:   InvalidInput.
DescribedSizes described_config(const PlanArguments& arguments, const NamedConfig& config,
                                const std::optional<NamedConfig>& base, const Say& say);

/// The model of two descriptions, with --role and --set.
/// Throws:   InvalidInput.
CodedModel described_model(const PlanArguments& arguments, const DescribedSizes& sizes,
                           const Say& say);

/// make_plans() for it.
std::vector<Plan> make_plans(const PlanArguments& arguments, const CodedModel& model,
                             const Say& say);

}  // namespace scalewise::tools
