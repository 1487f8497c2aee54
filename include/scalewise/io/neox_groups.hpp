// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <string>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

/// GPT-NeoX's optimizer groups, as Python code.
/// Source:   gpt-neox ea7aefd8, megatron/learning_rates.py: a scheduler with use_mup divides a group's rate by its
///           "width_mult"; optimizers of groups take their own decay and epsilon. DeepSpeed edaa7221,
///           runtime/zero/stage_1_and_2.py: one collective operation for each group.
/// Throws:   InvalidInput for another optimizer than AdamW, or a rate of 0.
/// Differs:  use_mup of a configuration stays off: it scales rates, initial values and outputs by itself.
inline std::string neox_groups(const dialect::NamedPlan& named) {
  detail::require_adamw(named, "gpt-neox", false);
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::regex);
  std::string text =
      detail::python_heading(named,
                             "For megatron/training.py: param_groups() in get_optimizer, "
                             "scale_rates() in get_learning_rate_scheduler.");
  text += detail::names_function(patterns) + "PARAM_GROUPS = [\n";
  for (const io::PatternGroup& group : patterns.groups) {
    if (group.factors.learning_rate == 0) {
      throw InvalidInput("learning rate of " + group.patterns.front().names.front(), "0",
                         "a positive factor");
    }
    for (const io::NamePattern& pattern : group.patterns) {
      text += fmt::format(
          "    (names({}), {{\"width_mult\": {}, \"weight_decay\": {}, \"eps\": {}}}),\n",
          detail::python_arguments(pattern.names), 1 / group.factors.learning_rate,
          io::factor_of_coupled_decay(named.plan, group.factors), group.factors.epsilon);
    }
  }
  text += "]\n" + detail::tensor_counts(patterns);
  return text.append(detail::count_function) + R"py(

def param_groups(model, neox_args, whole=True):
    """In place of get_params_for_weight_decay_optimization. A stage of a pipeline is not a whole model."""
    if neox_args.use_mup:
        raise ValueError("use_mup = True: expected False, since it scales rates and outputs once more")
    if neox_args.optimizer_type.lower() not in ("adam", "cpu_adam"):
        raise ValueError(f"optimizer.type = {neox_args.optimizer_type}: expected Adam, decoupled as in the plan")
    base = {"width_mult": 1, "weight_decay": neox_args.weight_decay,
            "eps": neox_args.optimizer["params"].get("eps", 1e-8)}
    found, groups = [], {}
    for name, parameter in model.named_parameters():
        found.append((name, [i for i, group in enumerate(PARAM_GROUPS) if re.search(group[0], name)]))
        for i in found[-1][1]:
            factors = PARAM_GROUPS[i][1]
            group = groups.setdefault(tuple(factors.values()),
                                      {"params": [], **{key: base[key] * factors[key] for key in base}})
            group["params"].append(parameter)
    check_counts([pattern for pattern, _ in PARAM_GROUPS], found, whole)
    planned = len({tuple(factors.values()) for _, factors in PARAM_GROUPS})
    if len(groups) < planned and (getattr(neox_args, "zero_optimization", None) or {}).get("stage", 0) > 0:
        raise ValueError(f"{len(groups)} of {planned} groups: all stages of a pipeline need as many with ZeRO, "
                         "which waits for each (hint: zero_optimization.stage = 0)")
    return list(groups.values())


def scale_rates(lr_scheduler):
    """Call it on the AnnealingLR, before it is returned."""
    for group in lr_scheduler.optimizer.param_groups:
        if "width_mult" not in group:
            raise ValueError("a group without width_mult: expected those of param_groups()")
    lr_scheduler.use_mup = True
    lr_scheduler.step(lr_scheduler.num_iters)
)py";
}

}  // namespace scalewise
