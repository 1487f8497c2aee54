// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <string>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"

namespace scalewise {

/// fairseq's optimizer groups, as Python code.
/// Source:   fairseq 3d262bb2, optim/composite.py: a parameter names its group, and each group has an optimizer and a
///           schedule of its own.
/// Throws:   InvalidInput for another optimizer than AdamW or SGD.
/// Differs:  weight_decay_scale of optim_overrides is not written: composite.py never applies it.
inline std::string fairseq_groups(const dialect::NamedPlan& named) {
  detail::require_adamw(named, "fairseq", true);
  const bool adam = named.plan.optimizer == adamw;
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::regex);
  std::string text = detail::python_heading(named,
                                            "Call set_param_groups() on the model before its "
                                            "trainer is made; composite() is its optimizer.");
  text += detail::names_function(patterns) + "PARAM_GROUPS = [\n";
  std::string factors;
  for (std::size_t g = 0; g < patterns.groups.size(); ++g) {
    const io::PatternGroup& group = patterns.groups[g];
    for (const io::NamePattern& pattern : group.patterns) {
      text += fmt::format("    (names({}), \"scalewise_{}\"),\n",
                          detail::python_arguments(pattern.names), g);
    }
    factors += fmt::format("    \"scalewise_{}\": {{\"lr\": {}, \"weight_decay\": {}{}}},\n", g,
                           group.factors.learning_rate,
                           io::factor_of_coupled_decay(named.plan, group.factors),
                           adam ? fmt::format(", \"adam_eps\": {}", group.factors.epsilon) : "");
  }
  text += "]\n" + detail::tensor_counts(patterns) + "FACTORS = {\n" + factors + "}\n";
  return text.append(detail::count_function) + R"py(

def set_param_groups(model, whole=True):
    """Names the group of each parameter, and counts them."""
    found = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            found.append((name, [i for i, group in enumerate(PARAM_GROUPS) if re.search(group[0], name)]))
            for i in found[-1][1]:
                parameter.param_group = PARAM_GROUPS[i][1]
    check_counts([pattern for pattern, _ in PARAM_GROUPS], found, whole)


def composite(lr, optimizer, lr_scheduler):
    """The section `optimizer` of a configuration, of those that the base model has; lr_scheduler: pass_through."""
    if lr_scheduler.get("_name") == "manual":
        raise ValueError("lr_scheduler = manual: expected another, since its rates are those of all groups")
    if isinstance(lr, (list, tuple)):
        if len(lr) != 1:
            raise ValueError(f"lr = {lr}: expected one rate")
        lr = lr[0]
    groups = {}
    for group, factors in FACTORS.items():
        own = {"weight_decay": 0.0, "adam_eps": 1e-8, **optimizer}
        rates = ("min_lr", "max_lr", "end_learning_rate", "warmup_init_lr")
        groups[group] = {
            "lr_float": lr * factors["lr"],
            "optimizer": {**optimizer, **{key: own[key] * factors[key] for key in factors if key != "lr"}},
            "lr_scheduler": {key: value * factors["lr"] if key in rates else value
                             for key, value in lr_scheduler.items()}}
    return {"_name": "composite", "groups": groups}
)py";
}

}  // namespace scalewise
