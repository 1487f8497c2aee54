// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The values of the options --set key=value and --constant NAME=FACTOR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/parameter.hpp"

namespace scalewise::tools {

/// A number in decimal; true is 1 and false 0.
/// Throws:   InvalidInput.
double number_of(const std::string& key, const std::string& text);

/// The constants of --constant NAME=FACTOR,…, which may be given several times, or the numbers of another option.
/// Throws:   InvalidInput.
std::vector<Parameter> constants_of(const std::vector<std::string>& lists,
                                    const std::string& option = "--constant",
                                    const std::string& example = "logits=1.8");

bool is_of_base(const std::string& setting);

/// Sets fields of the shape. What begins with "base." is left to set_base(); parameters are returned.
/// Throws:   InvalidInput.
std::vector<Parameter> set_target(const std::vector<std::string>& settings, Shape& target);

/// Sets fields of the base, those with the prefix "base.".
/// Requires: settings that set_target() has read.
/// Throws:   InvalidInput; `base_hint` says how to give a base when there is none.
void set_base(const std::vector<std::string>& settings, std::optional<Shape>& base,
              const std::string& base_hint);

/// Lines that name what --set asks for and a plan has otherwise, since the rule is for one kind of model or another field
/// says it already.
/// Requires: settings that set_target() and set_base() have read.
std::vector<std::string> without_effect(const std::vector<std::string>& settings, const Plan& plan);

}  // namespace scalewise::tools
