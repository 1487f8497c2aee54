// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

/// Groups for any optimizer of PyTorch, as JSON: regular expressions of names, with factors on the
/// global learning rate, weight decay and epsilon, and the optimizer where it is another than the plan's.
inline std::string torch_groups(const dialect::NamedPlan& named) {
  nlohmann::ordered_json groups = nlohmann::ordered_json::array();
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::regex);
  for (const io::PatternGroup& group : patterns.groups) {
    nlohmann::ordered_json regexes = nlohmann::ordered_json::array();
    for (const io::NamePattern& pattern : group.patterns) {
      regexes.push_back(io::whole_name_regex(patterns.head, pattern));
    }
    groups.push_back({{"patterns", regexes},
                      {"tensors", group.tensors},
                      {"lr", group.factors.learning_rate},
                      {"weight_decay", io::factor_of_coupled_decay(named.plan, group.factors)},
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

/// An optimizer of torchtitan.
struct TitanOptimizer {
  std::string_view name;
  std::string_view rate;  // the global one
  std::string_view more;
};

/// Source:   torchtitan b5bcd76c, components/optimizer/optimizer.py: Adam, AdamW and DistMuon, the latter with the
///           factors of distributed/flex_shard/dist_muon.py; torch.optim: Adam adds the decay to the gradient,
///           AdamW does not.
/// Throws:   InvalidInput for an optimizer that torchtitan lacks.
inline TitanOptimizer titan_optimizer(const Optimizer& optimizer, DecayForm decay) {
  if (optimizer == adamw) {
    return {decay == DecayForm::l2 ? "Adam" : "AdamW", "LR", ", \"betas\": BETAS"};
  }
  if (optimizer == muon_original) {
    return {"DistMuon", "MUON_LR", ", \"adjust_lr_fn\": \"original\""};
  }
  if (optimizer == muon_match_adamw) {
    return {"DistMuon", "MUON_LR", ", \"adjust_lr_fn\": \"match_rms_adamw\""};
  }
  if (optimizer == muon_fan_ratio) {
    return {"DistMuon", "MUON_LR", ", \"adjust_lr_fn\": \"spectral_unclamped\""};
  }
  throw InvalidInput("optimizer", std::string(optimizer.name),
                     "adamw, muon-original, muon-match-adamw or muon-fan-ratio",
                     "torchtitan has no other; --format torch-groups is for any optimizer");
}

}  // namespace detail

/// Source:   torchtitan b5bcd76c, components/optimizer/optimizer.py: the first pattern found in a name wins, and
///           one that is found in none is an error; arguments that are not given are PyTorch's defaults.
/// Throws:   InvalidInput for an optimizer that torchtitan lacks.
inline std::string torchtitan_groups(const dialect::NamedPlan& named) {
  const bool is_muon = named.plan.optimizer.normalization == policy::Normalization::by_matrix;
  const io::NamePatterns patterns = io::name_patterns(named, io::PatternStyle::regex);
  std::string text = detail::python_heading(
      named, is_muon
                 ? "Set LR (AdamW's), MUON_LR, WEIGHT_DECAY, EPS and BETAS to the values of the "
                   "base model;\n"
                   "# DistMuon's other arguments go into optimizer_factory_kwargs_by_name."
                 : "Set LR, WEIGHT_DECAY, EPS and BETAS to the values of the base model.");
  text += detail::names_function(patterns) + "PARAM_GROUPS = [\n";
  for (const io::PatternGroup& group : patterns.groups) {
    const detail::TitanOptimizer optimizer =
        detail::titan_optimizer(group.factors.optimizer, named.plan.decay);
    for (const io::NamePattern& pattern : group.patterns) {
      text += fmt::format(
          "    ParamGroupConfig(\n        pattern=names({}),\n        optimizer_name=\"{}\",\n"
          "        optimizer_kwargs={{\"lr\": {}, \"weight_decay\": {}{}{}}},\n    ),\n",
          detail::python_arguments(pattern.names), optimizer.name,
          detail::times(optimizer.rate, group.factors.learning_rate),
          detail::times("WEIGHT_DECAY", io::factor_of_coupled_decay(named.plan, group.factors)),
          group.factors.optimizer.has_epsilon
              ? ", \"eps\": " + detail::times("EPS", group.factors.epsilon)
              : "",
          optimizer.more);
    }
  }
  text += "]\n" + detail::tensor_counts(patterns);
  return text.append(detail::count_function) + R"py(

def check_groups(model, whole=True):
    """Counts the tensors of each group. A stage of a pipeline is not a whole model."""
    patterns = [group.pattern for group in PARAM_GROUPS]
    check_counts(patterns, [(name, [i for i, pattern in enumerate(patterns) if re.search(pattern, name)])
                            for name, parameter in model.named_parameters() if parameter.requires_grad], whole)
)py";
}

namespace detail {

/// The options of Megatron-LM's Muon that give an optimizer's own factor.
/// Source:   Megatron-LM d98e8a64, core/optimizer/emerging_optimizers.py: a mode of Emerging-Optimizers, of a matrix
///           of fan-out rows and fan-in columns, times an extra factor; query, key and value apart.
/// Throws:   InvalidInput for an optimizer that Megatron-LM lacks.
inline std::string megatron_options(const Optimizer& optimizer, DecayForm decay) {
  const auto muon = [](std::string_view mode, double extra) {
    return fmt::format(
        "{{\"optimizer\": \"muon\", \"muon_scale_mode\": \"{}\", \"muon_extra_scale_factor\": {}, "
        "\"muon_split_qkv\": True}}",
        mode, extra);
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

/// One entry of config_overrides. Muon has no epsilon that a rule scales.
inline std::string megatron_override(const dialect::NamedPlan& named,
                                     const io::PatternGroup& group) {
  const bool is_muon = group.factors.optimizer.normalization == policy::Normalization::by_matrix;
  const double rate = group.factors.learning_rate;
  const std::string epsilon = group.factors.optimizer.has_epsilon
                                  ? ", \"eps\": " + times("EPS", group.factors.epsilon)
                                  : "";
  return fmt::format("{{\"max_lr\": {}, \"min_lr\": {}, \"wd_mult\": {}{}}}",
                     times(is_muon ? "MUON_LR" : "LR", rate),
                     times(is_muon ? "MUON_MIN_LR" : "MIN_LR", rate),
                     io::factor_of_coupled_decay(named.plan, group.factors), epsilon);
}

}  // namespace detail

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
  for (const io::PatternGroup& group : patterns.groups) {
    const bool by_matrix =
        group.factors.optimizer.normalization == policy::Normalization::by_matrix;
    for (const io::NamePattern& pattern : group.patterns) {
      const std::string names = detail::python_arguments(pattern.names, patterns.head);
      text += fmt::format("    ParamKey(name={}): {},\n",
                          pattern.names.size() == 1 ? names : "(" + names + ")",
                          detail::megatron_override(named, group));
      with_muon += with_muon.empty() ? "" : ", ";
      with_muon += by_matrix ? "True" : "False";
    }
  }
  text += "}\n" + detail::tensor_counts(patterns) +
          (is_muon ? "MUON = [" + with_muon + "]\n" : "") +
          "OPTIONS = " + detail::megatron_options(optimizer, named.plan.decay) + "\n";
  text += detail::count_function;
  text += R"py(

def check_overrides(config, model_chunks, whole=True):
    """Call it with the arguments of get_megatron_optimizer. A stage of a pipeline is not a whole model."""
    for option, value in OPTIONS.items():
        if getattr(config, option) != value:
            raise ValueError(f"{option} = {getattr(config, option)}: expected {value}, as in the plan")
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
    groups = {}
    for group, factors in FACTORS.items():
        own = {"weight_decay": 0.0, "adam_eps": 1e-8, **optimizer}
        rates = ("min_lr", "end_learning_rate", "warmup_init_lr")
        groups[group] = {
            "lr_float": lr * factors["lr"],
            "optimizer": {**optimizer, **{key: own[key] * factors[key] for key in factors if key != "lr"}},
            "lr_scheduler": {key: value * factors["lr"] if key in rates else value
                             for key, value in lr_scheduler.items()}}
    return {"_name": "composite", "groups": groups}
)py";
}

/// Source:   gpt-neox ea7aefd8, megatron/learning_rates.py: a scheduler with use_mup divides a group's rate by its
///           "width_mult"; optimizers of groups take their own decay and epsilon.
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
