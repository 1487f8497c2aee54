// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The registry for our tests and programs: all rules are compiled once, in library instances_rules.
#pragma once

#include "scalewise/plan/make_plan_by_name.hpp"

namespace scalewise {

extern template std::vector<RuleInfo> rules<void>();
extern template std::vector<std::string> parameter_names<void>(std::string_view);
extern template Plan make_plan<void>(std::string_view, const Optimizer&, const Shape&,
                                     const std::optional<Shape>&, const std::vector<Parameter>&,
                                     DecayForm, const std::vector<Extra>&);
extern template Plan with_start<void>(const Plan&, std::string_view);

}  // namespace scalewise
