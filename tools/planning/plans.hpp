// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// From the words of `plan` to plans, for the programs and for the playground: no files, no output.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/described_model.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/plan/code_factors.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::tools {

/// Takes warnings and notes, a line each.
using Say = std::function<void(const std::string&)>;

/// A model to be planned, or its base.
struct GivenModel {
  Shape shape;
  std::optional<plan::CodeFactors> code = {};  // what a configuration says that its code multiplies
  std::optional<double> initializer_std = {};  // of a configuration, and what it is called there
  std::string initializer_key = {};
  std::vector<Extra> tensors = {};  // of a model that descriptions give
};

/// The model of two descriptions, and what the code of each multiplies.
struct CodedModel : DescribedModel {
  plan::CodeFactors code = {}, base_code = {};
};

struct PlanArguments {
  std::string program = "plan";  // in messages
  std::string rule;
  std::vector<std::string> compare;
  std::string optimizer = "adamw";
  DecayForm decay = DecayForm::coupled;
  std::string preset;
  std::string config;
  std::string base_preset;
  std::string base_config;
  Base base;
  std::vector<std::string> set;
  std::vector<std::string> extra;
  std::string model;  // descriptions, of the target and of the base
  std::string base_model;
  std::string check_model;  // of a third size
  std::vector<std::string> role;
  plan::CodeFactors names_code = {};  // what the code base of --names multiplies
  std::string start;
  std::vector<std::string> constants;  // each a list with commas
  std::string from_standard;           // a list with commas: rate, decay
  std::optional<dialect::Cut> cut;
  bool strict = false;
  bool fold = false;
  bool single_rate = false;
};

/// An option that cannot be given together with another.
struct Exclusion {
  std::string option, other;

  InvalidInput error() const { return {option, "(given)", "it without " + other}; }
};
/// Options that exclude each other: of the shape, of what is done to a plan, and of what `plan` writes.
inline const Exclusion shape_exclusions[] = {{"--config", "--preset"},
                                             {"--base-config", "--base-preset"},
                                             {"--base-width", "--base-preset"},
                                             {"--base-width", "--base-config"},
                                             {"--base-depth", "--base-preset"},
                                             {"--base-depth", "--base-config"},
                                             {"--base-experts", "--base-preset"},
                                             {"--base-experts", "--base-config"}};
inline const Exclusion rewriting_exclusions[] = {{"--single-rate", "--fold"}};
inline const Exclusion comparison_exclusions[] = {{"--compare", "--rule"},
                                                  {"--names", "--compare"}};

/// The tensors of --extra.
std::vector<Extra> extras_of(const PlanArguments& arguments);

/// The plans of --rule or --compare. --set changes the target first, --base-width and its like make a base of
/// it, and --set changes that; `--preset`, `--config` and their like are not looked at. What the code multiplies is
/// what the configurations say, or else the code base of --names. `say` gets a line for each warning, for what the
/// code multiplies, and for what --fold or
/// --single-rate leaves.
/// Throws:   InvalidInput; std::invalid_argument with all warnings of a strict plan.
std::vector<Plan> make_plans(const PlanArguments& arguments, GivenModel target,
                             std::optional<GivenModel> base, const Say& say);

}  // namespace scalewise::tools
