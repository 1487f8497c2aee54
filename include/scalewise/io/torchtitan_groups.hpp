// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/io/name_patterns.hpp"
#include "scalewise/io/python_code.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise {

namespace detail {

/// An optimizer of torchtitan.
struct TitanOptimizer {
  std::string_view name;
  std::string_view rate;  // the global one
  std::string_view more;
};

/// Source:   torchtitan b5bcd76c, components/optimizer/optimizer.py: Adam, AdamW and DistMuon, the latter with the
///           factors of distributed/flex_shard/dist_muon.py, which refuses the container's own fused = True;
///           torch.optim: Adam adds the decay to the gradient, AdamW does not.
/// Throws:   InvalidInput for an optimizer that torchtitan lacks.
inline TitanOptimizer titan_optimizer(const Optimizer& optimizer, DecayForm decay) {
  if (optimizer == adamw) {
    return {decay == DecayForm::l2 ? "Adam" : "AdamW", "LR", ", \"betas\": BETAS"};
  }
  const auto muon = [](std::string_view more) {
    return TitanOptimizer{"DistMuon", "MUON_LR", more};
  };
  if (optimizer == muon_original) {
    return muon(R"(, "adjust_lr_fn": "original", "fused": False, "foreach": False)");
  }
  if (optimizer == muon_match_adamw) {
    return muon(R"(, "adjust_lr_fn": "match_rms_adamw", "fused": False, "foreach": False)");
  }
  if (optimizer == muon_fan_ratio) {
    return muon(R"(, "adjust_lr_fn": "spectral_unclamped", "fused": False, "foreach": False)");
  }
  throw InvalidInput("optimizer", std::string(optimizer.name),
                     "adamw, muon-original, muon-match-adamw or muon-fan-ratio",
                     "torchtitan has no other; --format torch-groups is for any optimizer");
}

/// Throws:   InvalidInput for a plan for matrices that DistMuon would have to cut out of one tensor.
inline void require_whole_matrices(const dialect::NamedPlan& named) {
  if (named.cut != dialect::Cut::qkv) return;
  for (const dialect::OwnerTensor& tensor : named.assignment.tensors) {
    if (tensor.parts.size() < 2) continue;
    throw InvalidInput("cut", "qkv",
                       "none, as torchtitan's DistMuon takes " + tensor.name + " whole",
                       "with fuse_qkv = False, the names are those of meta-llama");
  }
}

/// All patterns of Muon's matrices as one.
/// Throws:   InvalidInput for several rates or decays.
inline io::NamePatterns muon_in_one(io::NamePatterns patterns) {
  const io::PatternGroup* first = nullptr;
  for (io::PatternGroup& group : patterns.groups) {
    if (!is_by_matrix(group)) continue;
    if (first != nullptr) {
      throw InvalidInput(
          "optimizer", std::string(group.factors.optimizer.name),
          "one rate and decay for all matrices, as torchtitan's DistMuon has one group",
          group.patterns.front().names.front() + " has a rate of " +
              fmt::format("{}", group.factors.learning_rate) + ", " +
              first->patterns.front().names.front() + " of " +
              fmt::format("{}", first->factors.learning_rate));
    }
    first = &group;
    io::NamePattern all;
    for (io::NamePattern& pattern : group.patterns) {
      all.tensors += pattern.tensors;
      for (std::string& name : pattern.names) all.names.push_back(std::move(name));
    }
    group.patterns = {std::move(all)};
  }
  return patterns;
}

}  // namespace detail

/// torchtitan's optimizer groups, as Python code.
/// Source:   torchtitan b5bcd76c, components/optimizer/optimizer.py: the first pattern found in a name wins, and
///           one that is found in none is an error; arguments that are not given are PyTorch's defaults.
///           distributed/flex_shard/dist_muon.py: DistMuon has one group.
/// Throws:   InvalidInput for an optimizer that torchtitan lacks, and for a plan whose matrices have several rates or
///           decays by Muon, or are cut out of fused ones.
inline std::string torchtitan_groups(const dialect::NamedPlan& named) {
  const bool is_muon = named.plan.optimizer.normalization == policy::Normalization::by_matrix;
  if (is_muon) detail::require_whole_matrices(named);
  const io::NamePatterns patterns =
      detail::muon_in_one(io::name_patterns(named, io::PatternStyle::regex));
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

}  // namespace scalewise
