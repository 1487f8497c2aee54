// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Shared by the programs that make plans for a model: its shape, the rule, and the base.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "planning/plans.hpp"
#include "scalewise/architecture/described_model.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/dialect/named_plan.hpp"

namespace scalewise::tools {

/// Requires: options with these names.
void exclude(frame::Options& options, std::span<const Exclusion> exclusions);

/// Options of the model and of its base.
void add_shape_options(frame::Options& options, PlanArguments& arguments);

/// Options of a model that two descriptions give.
void add_description_options(frame::Options& options, PlanArguments& arguments);

/// Options of how a plan is made.
void add_plan_options(frame::Options& options, PlanArguments& arguments);

/// Calls use() with the dialect of --names: an id, or a file that describes one (.json). The program says
/// on standard error what its code base computes that no plan contains.
void with_names(const std::string& program, const std::string& names,
                const std::function<void(const dialect::Dialect&)>& use);

/// The value of --cut; empty where it is not given.
/// Throws:   InvalidInput for a plan that it means nothing to.
std::optional<dialect::Cut> cut_of(const PlanArguments& arguments, const Plan& plan);

/// The factors of the code base of --names.
plan::CodeFactors code_of_names(const std::string& names);

/// The model of a configuration. Keys that the reader does not know are said on standard error.
GivenModel model_of_config(const std::string& program, const std::string& path);

/// The model of the options, if any: one of the two.
struct AskedModel {
  std::optional<CodedModel>
      described;  // by descriptions, or by a table of tensors where a type has no shape
  std::optional<GivenModel> given;
};

/// The model of --model and --base-model, or of --config or --preset. Each file is read once: it may be a pipe.
AskedModel asked_model(const PlanArguments& arguments);

/// make_plans() for it. What it says goes to standard error.
std::vector<Plan> make_plans(const PlanArguments& arguments, const CodedModel& model);

/// The model of --preset or --config; empty where neither is given.
std::optional<GivenModel> given_model(const PlanArguments& arguments);

/// make_plans() with the base of --base-preset or --base-config, if one is given. What it says goes to standard error.
std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target);

}  // namespace scalewise::tools
