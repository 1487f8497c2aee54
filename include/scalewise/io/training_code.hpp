// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::inline io {

/// The factor on a weight decay that an optimizer multiplies by the tensor's own rate, as PyTorch's do.
/// Units:    a factor on the global weight decay
inline double factor_of_coupled_decay(const Plan& plan, const dialect::TensorFactors& factors) {
  const bool independent = plan.decay == DecayForm::independent && factors.learning_rate > 0;
  return factors.weight_decay / (independent ? factors.learning_rate : 1);
}

namespace detail {

/// The first lines of a configuration in Python.
inline std::string python_heading(const dialect::NamedPlan& named, std::string_view what) {
  return fmt::format("# Rule {}, optimizer {}, names {}.\n# {}\n", named.plan.rule,
                     named.plan.optimizer.name, named.assignment.dialect, what);
}

/// LR * 0.125, or LR.
inline std::string times(std::string_view symbol, double factor) {
  return factor == 1 ? std::string(symbol) : fmt::format("{} * {}", symbol, factor);
}

/// Throws:   InvalidInput for a plan whose tensors have different optimizers.
inline void require_one_optimizer(const dialect::NamedPlan& named, std::string_view format) {
  if (named.plan.optimizer.normalization != Normalization::by_matrix) return;
  throw InvalidInput("optimizer", std::string(named.plan.optimizer.name),
                     "one optimizer for all tensors, as " + std::string(format) + " has",
                     "--format torch-groups, torchtitan and json say which tensor has which");
}

inline void require_no_epsilons(const dialect::NamedPlan& named, std::string_view format) {
  for (std::size_t i = 0; i < named.factors.size(); ++i) {
    if (named.factors[i].epsilon == 1 || !named.factors[i].optimizer.has_epsilon) continue;
    throw InvalidInput("epsilon of " + named.assignment.tensors[i].name,
                       fmt::format("{} times the global one", named.factors[i].epsilon),
                       "1: groups of " + std::string(format) + " have one epsilon in common",
                       "take a rule that leaves epsilon alone, or --format torch-groups");
  }
}

}  // namespace detail

/// Groups for any optimizer of PyTorch, as JSON: regular expressions of names, with factors on the
/// global learning rate, weight decay and epsilon, and the optimizer where it is another than the plan's.
inline std::string torch_groups(const dialect::NamedPlan& named) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  for (const PatternGroup& group : pattern_groups(named, PatternStyle::regex)) {
    groups.push_back({{"patterns", group.patterns},
                      {"tensors", group.tensors},
                      {"lr", group.factors.learning_rate},
                      {"weight_decay", factor_of_coupled_decay(named.plan, group.factors)},
                      {"eps", group.factors.epsilon}});
    if (group.factors.optimizer == named.plan.optimizer) continue;
    groups.back()["optimizer"] = group.factors.optimizer.name;
  }
  return nlohmann::ordered_json{{"schema", "scalewise.torch_groups/1"},
                                {"rule", named.plan.rule},
                                {"optimizer", named.plan.optimizer.name},
                                {"dialect", named.assignment.dialect},
                                {"groups", groups}}
             .dump(1) +
         "\n";
}

namespace detail {

/// An optimizer as torch.optim has it.
struct TorchOptimizer {
  std::string_view name;
  std::string_view rate;  // the global one
  std::string_view more = {};
};

/// Source:   torch.optim: Adam adds the decay to the gradient, AdamW does not; Muon's adjust_lr_fn is "original" or
///           "match_rms_adamw".
/// Throws:   InvalidInput for an optimizer that torch.optim lacks.
inline TorchOptimizer torch_optimizer(const Optimizer& optimizer, DecayForm decay) {
  if (optimizer.has_epsilon) return {decay == DecayForm::l2 ? "Adam" : "AdamW", "LR"};
  if (optimizer == muon_original) return {"Muon", "MUON_LR", ", \"adjust_lr_fn\": \"original\""};
  if (optimizer == muon_match_adamw) {
    return {"Muon", "MUON_LR", ", \"adjust_lr_fn\": \"match_rms_adamw\""};
  }
  if (optimizer.normalization == Normalization::none) return {"SGD", "LR"};
  throw InvalidInput("optimizer", std::string(optimizer.name),
                     "adamw, sgd, muon-original or muon-match-adamw",
                     "torch.optim has no other; --format torch-groups is for any optimizer");
}

}  // namespace detail

/// Source:   torchtitan's ParamGroupConfig: the first pattern found in a name wins, and one that is
///           found in none is an error.
/// Throws:   InvalidInput for an optimizer that torch.optim lacks.
inline std::string torchtitan_groups(const dialect::NamedPlan& named) {
  const bool muon = named.plan.optimizer.normalization == Normalization::by_matrix;
  std::string text = detail::python_heading(
      named,
      muon ? "Set LR (AdamW's), MUON_LR, WEIGHT_DECAY and EPS to the values of the base model."
           : "Set LR, WEIGHT_DECAY and EPS to the values of the base model.");
  text += "PARAM_GROUPS = [\n";
  for (const PatternGroup& group : pattern_groups(named, PatternStyle::regex)) {
    const detail::TorchOptimizer optimizer =
        detail::torch_optimizer(group.factors.optimizer, named.plan.decay);
    for (const std::string& pattern : group.patterns) {
      text += fmt::format(
          "    ParamGroupConfig(\n        pattern=r\"{}\",\n        optimizer_name=\"{}\",\n"
          "        optimizer_kwargs={{\"lr\": {}, \"weight_decay\": {}{}{}}},\n    ),\n",
          pattern, optimizer.name, detail::times(optimizer.rate, group.factors.learning_rate),
          detail::times("WEIGHT_DECAY", factor_of_coupled_decay(named.plan, group.factors)),
          group.factors.optimizer.has_epsilon
              ? ", \"eps\": " + detail::times("EPS", group.factors.epsilon)
              : "",
          optimizer.more);
    }
  }
  return text + "]\n";
}

/// Source:   Megatron-LM's config_overrides: names are patterns of fnmatch, the smallest rate has to
///           scale as well, and keys that match the same tensor must not differ.
/// Throws:   InvalidInput for a plan with several optimizers.
inline std::string megatron_overrides(const dialect::NamedPlan& named) {
  detail::require_one_optimizer(named, "Megatron-LM");
  std::string text = detail::python_heading(
      named, "Set LR, MIN_LR and EPS to the values of the base model; no other overrides.");
  text += "CONFIG_OVERRIDES = {\n";
  for (const PatternGroup& group : pattern_groups(named, PatternStyle::glob)) {
    for (const std::string& pattern : group.patterns) {
      text += fmt::format(
          "    ParamKey(name=\"{}\"): {{\"max_lr\": {}, \"min_lr\": {}, \"wd_mult\": {}, \"eps\": "
          "{}}},\n",
          pattern, detail::times("LR", group.factors.learning_rate),
          detail::times("MIN_LR", group.factors.learning_rate),
          factor_of_coupled_decay(named.plan, group.factors),
          detail::times("EPS", group.factors.epsilon));
    }
  }
  return text + "}\n";
}

/// Source:   fairseq's composite optimizer: param_group names the group, optim_overrides its scales.
/// Throws:   InvalidInput for a plan with several optimizers or epsilons.
inline std::string fairseq_groups(const dialect::NamedPlan& named) {
  detail::require_one_optimizer(named, "fairseq");
  detail::require_no_epsilons(named, "fairseq");
  std::string text = "import re\n\n" +
                     detail::python_heading(
                         named, "Call it before the optimizer is built; --optimizer composite.") +
                     "PARAM_GROUPS = [\n";
  for (const PatternGroup& group : pattern_groups(named, PatternStyle::regex)) {
    for (const std::string& pattern : group.patterns) {
      text += fmt::format("    (r\"{}\", {{\"lr_scale\": {}, \"weight_decay_scale\": {}}}),\n",
                          pattern, group.factors.learning_rate,
                          factor_of_coupled_decay(named.plan, group.factors));
    }
  }
  return text +
         "]\n\n\ndef set_param_groups(model):\n"
         "    for name, parameter in model.named_parameters():\n"
         "        scales = [s for pattern, s in PARAM_GROUPS if re.match(pattern, name)]\n"
         "        if len(scales) != 1:\n"
         "            raise ValueError(f\"{name}: {len(scales)} patterns match\")\n"
         "        parameter.param_group = str(sorted(scales[0].items()))\n"
         "        parameter.optim_overrides = {\"optimizer\": scales[0]}\n";
}

/// Source:   gpt-neox's learning_rates.py divides a group's rate by its "width_mult".
/// Throws:   InvalidInput for a plan with several optimizers or epsilons, or a rate of 0.
inline std::string neox_groups(const dialect::NamedPlan& named) {
  detail::require_one_optimizer(named, "gpt-neox");
  detail::require_no_epsilons(named, "gpt-neox");
  std::string text =
      "import re\n\n" +
      detail::python_heading(named, "The scheduler divides each group's rate by its width_mult.") +
      "PARAM_GROUPS = [\n";
  for (const PatternGroup& group : pattern_groups(named, PatternStyle::regex)) {
    if (group.factors.learning_rate == 0) {
      throw InvalidInput("learning rate of " + group.patterns.front(), "0", "a positive factor");
    }
    for (const std::string& pattern : group.patterns) {
      text += fmt::format("    (r\"{}\", {{\"width_mult\": {}, \"weight_decay\": {}}}),\n", pattern,
                          1 / group.factors.learning_rate,
                          factor_of_coupled_decay(named.plan, group.factors));
    }
  }
  return text +
         "]\n\n\ndef param_groups(model, weight_decay):\n"
         "    groups = {}\n"
         "    for name, parameter in model.named_parameters():\n"
         "        found = [g for pattern, g in PARAM_GROUPS if re.match(pattern, name)]\n"
         "        if len(found) != 1:\n"
         "            raise ValueError(f\"{name}: {len(found)} patterns match\")\n"
         "        group = groups.setdefault(str(sorted(found[0].items())), {\n"
         "            \"params\": [], \"width_mult\": found[0][\"width_mult\"],\n"
         "            \"weight_decay\": weight_decay * found[0][\"weight_decay\"]})\n"
         "        group[\"params\"].append(parameter)\n"
         "    return list(groups.values())\n";
}

}  // namespace scalewise::inline io
