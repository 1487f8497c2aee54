// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The options of the programs for a rule: --rule, --start, --set and --constant. set_option.hpp reads the values of the last two.
#pragma once

#include <string>
#include <vector>

#include "frame/options.hpp"

namespace scalewise::tools {

/// The id of a rule by any of its names, for Option::names().
/// Throws:   InvalidInput.
std::string rule_id(const std::string& name, const std::string& option);

/// Whether a rule has a parameter of that name.
bool has_parameter(const std::string& rule, const std::string& name);

frame::Option& add_rule_option(frame::Options& options, std::string& rule);
frame::Option& add_start_option(frame::Options& options, std::string& start);
frame::Option& add_set_option(frame::Options& options, std::vector<std::string>& set);
frame::Option& add_constant_option(frame::Options& options, std::vector<std::string>& constants);

}  // namespace scalewise::tools
