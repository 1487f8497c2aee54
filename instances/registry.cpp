// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "instances/registry.hpp"

namespace scalewise {

template std::vector<RuleInfo> rules<void>();
template std::vector<std::string> parameter_names<void>(std::string_view);
template Plan make_plan<void>(std::string_view, const Optimizer&, const Shape&,
                              const std::optional<Shape>&, const std::vector<Parameter>&, DecayForm,
                              const std::vector<Extra>&);
template Plan with_start<void>(const Plan&, std::string_view);

}  // namespace scalewise
