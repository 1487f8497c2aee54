// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "planning/rule_options.hpp"

#include <algorithm>

#include "scalewise/policy/rule.hpp"
#include "scalewise/policy/rule_id.hpp"

namespace scalewise::tools {

std::string rule_id(const std::string& name, const std::string& option) {
  return policy::rule_id(name, option);
}

bool has_parameter(const std::string& rule, const std::string& name) {
  const std::vector<std::string> known = policy::parameter_names(rule);
  return std::find(known.begin(), known.end(), name) != known.end();
}

frame::Option& add_rule_option(frame::Options& options, std::string& rule) {
  return options.add("--rule", rule, "name of a rule, see plan --list-rules").names(rule_id);
}

frame::Option& add_start_option(frame::Options& options, std::string& start) {
  return options.add("--start", start, "rule that initializes the base model of a relative rule")
      .names(rule_id);
}

frame::Option& add_set_option(frame::Options& options, std::vector<std::string>& set) {
  return options
      .add("--set", set,
           "key=value: a field of the shape (base.key for the base) or a parameter of the rule")
      .repeated();
}

frame::Option& add_constant_option(frame::Options& options, std::vector<std::string>& constants) {
  return options
      .add("--constant", constants,
           "NAME=FACTOR, or several with commas: what was tuned on the base, such as "
           "logits=1.8,embedding.rate=2.3")
      .repeated();
}

}  // namespace scalewise::tools
