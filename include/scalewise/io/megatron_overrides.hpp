// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// The options of Megatron-LM's Muon that give an optimizer's own factor.
/// Source:   Megatron-LM d98e8a64, core/optimizer/emerging_optimizers.py: a mode of Emerging-Optimizers, of a matrix
///           of fan-out rows and fan-in columns, times an extra factor; query, key and value apart, unless the plan
///           cuts nothing. Other tensors have Adam's steps, by muon_scalar_optimizer.
/// Throws:   InvalidInput for an optimizer that Megatron-LM lacks.
inline std::string megatron_options(const dialect::NamedPlan& named) {
  const Optimizer& optimizer = named.plan.optimizer;
  const DecayForm decay = named.plan.decay;
  const auto muon = [&](std::string_view mode, double extra) {
    return fmt::format(
        "{{\"optimizer\": \"muon\", \"muon_scale_mode\": \"{}\", \"muon_extra_scale_factor\": {}, "
        "\"muon_split_qkv\": {},\n           \"muon_scalar_optimizer\": \"adam\", "
        "\"decoupled_weight_decay\": {}}}",
        mode, extra, named.cut == dialect::Cut::none ? "False" : "True",
        decay == DecayForm::l2 ? "False" : "True");
  };
  if (optimizer == adamw) {
    return fmt::format("{{\"optimizer\": \"adam\", \"decoupled_weight_decay\": {}}}",
                       decay == DecayForm::l2 ? "False" : "True");
  }
  if (optimizer == sgd) return "{\"optimizer\": \"sgd\"}";
  if (optimizer == muon_original) return muon("shape_scaling", 1);
  if (optimizer == muon_fan_ratio) return muon("unit_rms_norm", 1);
  if (optimizer == muon_match_adamw) return muon("spectral", 0.2);
  if (optimizer.name == "muon-spectral") return muon("spectral", 1);
  throw InvalidInput("optimizer", std::string(optimizer.name),
                     "adamw, sgd, muon-original, muon-match-adamw, muon-fan-ratio or muon-spectral",
                     "Megatron-LM has no other");
}

/// One entry of config_overrides, of groups[g]. Muon has no epsilon that a rule scales. A rate that is the global one
/// is not written, since Megatron-LM logs the rate of a group without one. Groups of a checkpoint are told apart by
/// rate and decay, not by epsilon: lr_mult, which nothing else reads, is a number of those that agree in both.
/// Source:   Megatron-LM d98e8a64, core/optimizer/__init__.py, _get_param_groups; core/optimizer/optimizer.py,
///           param_group_identifier_keys
inline std::string megatron_override(const dialect::NamedPlan& named,
                                     const std::vector<io::PatternGroup>& groups, std::size_t g) {
  const io::PatternGroup& group = groups[g];
  const auto decay = [&](const io::PatternGroup& of) {
    return io::factor_of_coupled_decay(named.plan, of.factors);
  };
  const bool is_muon = is_by_matrix(group);
  const double rate = group.factors.learning_rate;
  std::size_t alike = 1;
  for (std::size_t i = 0; i < g; ++i) {
    const bool same = is_by_matrix(groups[i]) == is_muon &&
                      groups[i].factors.learning_rate == rate && decay(groups[i]) == decay(group);
    if (same) ++alike;
  }
  std::string text = fmt::format("{{\"wd_mult\": {}", decay(group));
  if (is_muon || rate != 1) {
    text += fmt::format(", \"max_lr\": {}, \"min_lr\": {}", times(is_muon ? "MUON_LR" : "LR", rate),
                        times(is_muon ? "MUON_MIN_LR" : "MIN_LR", rate));
  }
  if (group.factors.optimizer.has_epsilon)
    text += ", \"eps\": " + times("EPS", group.factors.epsilon);
  if (alike > 1) text += fmt::format(", \"lr_mult\": {}", alike);
  return text + "}";
}

}  // namespace detail

/// Megatron-LM's config_overrides, as Python code.
/// Source:   Megatron-LM d98e8a64, core/optimizer: overrides are for patterns of fnmatch, the smallest rate has to
///           scale as well, a tensor without a match has the defaults, and Muon takes all matrices but
///           those of word embeddings and of the output.
/// Throws:   InvalidInput for an optimizer that Megatron-LM lacks.
inline std::string megatron_overrides(const dialect::NamedPlan& named) {
  const Optimizer& optimizer = named.plan.optimizer;
  const bool is_muon = optimizer.normalization == policy::Normalization::by_matrix;
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::glob);
  std::string text = detail::python_heading(
      named, is_muon
                 ? "Set LR, MIN_LR and EPS (Adam's), MUON_LR and MUON_MIN_LR to the values of the "
                   "base model;\n"
                   "# no other overrides."
                 : "Set LR, MIN_LR and EPS to the values of the base model; no other overrides.");
  text += "CONFIG_OVERRIDES = {\n";
  std::string with_muon;
  for (std::size_t g = 0; g < patterns.groups.size(); ++g) {
    const bool by_matrix = detail::is_by_matrix(patterns.groups[g]);
    for (const io::NamePattern& pattern : patterns.groups[g].patterns) {
      const std::string names = detail::python_arguments(pattern.names, patterns.head);
      text += fmt::format("    ParamKey(name={}): {},\n",
                          pattern.names.size() == 1 ? names : "(" + names + ")",
                          detail::megatron_override(named, patterns.groups, g));
      with_muon += with_muon.empty() ? "" : ", ";
      with_muon += by_matrix ? "True" : "False";
    }
  }
  text += "}\n" + detail::tensor_counts(patterns) +
          (is_muon ? "MUON = [" + with_muon + "]\n" : "") +
          "OPTIONS = " + detail::megatron_options(named) + "\n";
  text += detail::count_function;
  text += R"py(

def check_overrides(config, model_chunks, whole=True):
    """Call it with the arguments of get_megatron_optimizer. A stage of a pipeline is not a whole model."""
    for option, value in OPTIONS.items():
        if getattr(config, option) != value:
            raise ValueError(f"{option} = {getattr(config, option)}: expected {value}, as in the plan")
    if config.optimizer == "muon" and config.muon_tp_mode == "blockwise":
        raise ValueError("muon_tp_mode = blockwise: expected duplicated or distributed, whose matrices are those of the plan")
    found = []
    for chunk in model_chunks:
        for name, parameter in chunk.named_parameters():
            if parameter.requires_grad:
                found.append((name, [i for i, key in enumerate(CONFIG_OVERRIDES) if key.matches(parameter, name)]))
)py";
  if (is_muon) {
    text +=
        R"py(                muon = (parameter.dim() == 2 and getattr(parameter, "use_muon", True)
                        and not getattr(parameter, "is_embedding_or_output_parameter", False))
                if any(MUON[i] != muon for i in found[-1][1]):
                    raise ValueError(f"{name}: expected {'Adam' if muon else 'Muon'}, as in the plan "
                                     "(hint: its attribute use_muon says which)")
)py";
  }
  return text + "    check_counts([key.name for key in CONFIG_OVERRIDES], found, whole)\n";
}

}  // namespace scalewise
