// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What the programs that make plans for a model have in common: its shape, the rule, and the base.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/plan/make_plan.hpp"

namespace scalewise::tools {

struct PlanArguments {
  std::string program = "plan";  // in messages
  std::string rule;
  std::vector<std::string> compare;
  std::string optimizer = "adamw";
  std::string decay = "coupled";
  std::string preset;
  std::string config;
  std::string base_preset;
  std::string base_config;
  std::vector<std::string> set;
  std::vector<std::string> extra;
  std::string start;
  bool strict = false;
  bool fold = false;
  bool single_rate = false;
};

/// Options of the model and of its base.
void add_shape_options(frame::Options& options, PlanArguments& arguments);

/// Options of how a plan is made.
void add_plan_options(frame::Options& options, PlanArguments& arguments);

/// What --names knows by itself.
std::vector<std::string> dialect_ids();

/// Calls use() with the dialect of --names: an id, or a file that describes one (.json).
void with_names(const std::string& names, const std::function<void(const dialect::Dialect&)>& use);

/// The shape of --preset or --config; empty where neither is given.
std::optional<Shape> given_shape(const PlanArguments& arguments);

/// The tensors of --extra.
std::vector<Extra> extras_of(const PlanArguments& arguments);

/// The plans of --rule or --compare for a target, which --set changes first. Warnings, and what
/// --fold or --single-rate leaves, go to standard error.
/// Throws:   InvalidInput; std::invalid_argument with all warnings of a strict plan.
std::vector<Plan> make_plans(const PlanArguments& arguments, Shape target);

}  // namespace scalewise::tools
