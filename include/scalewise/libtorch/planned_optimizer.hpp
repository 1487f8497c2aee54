// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "scalewise/libtorch/planned_module.hpp"

namespace scalewise::libtorch {

namespace detail {

template <class Options>
inline constexpr bool is_sgd = std::is_same_v<Options, torch::optim::SGDOptions>;

/// PyTorch's Adam adds the decay to the gradient, its AdamW does not.
template <class Options>
inline constexpr bool is_adam = std::is_same_v<Options, torch::optim::AdamOptions>;

template <class Options>
inline constexpr std::string_view optimizer_name = is_sgd<Options>    ? "SGD"
                                                   : is_adam<Options> ? "Adam"
                                                                      : "AdamW";

/// Throws:   InvalidInput for the options of another optimizer than the plan's.
template <class Options>
void require_options(const Plan& plan, const Options& global) {
  static_assert(
      is_sgd<Options> || is_adam<Options> || std::is_same_v<Options, torch::optim::AdamWOptions>,
      "plans are for AdamW, Adam and SGD");
  if (plan.optimizer != sgd && plan.optimizer != adamw) {
    throw InvalidInput("optimizer", std::string(plan.optimizer.name),
                       "one that LibTorch has: adamw or sgd");
  }
  const std::string wanted = plan.optimizer == sgd         ? "SGD"
                             : plan.decay == DecayForm::l2 ? "Adam"
                                                           : "AdamW";
  const std::string given(optimizer_name<Options>);
  const bool alike = wanted != "SGD" && given != "SGD" && global.weight_decay() == 0;
  if (given == wanted || alike) return;
  throw InvalidInput("options", given + "Options", wanted + "Options",
                     "the plan is for " + std::string(plan.optimizer.name) + " with " +
                         std::string(word(policy::decay_words, plan.decay)) + " decay");
}

/// The name of a class of LibTorch's own; empty for those of others, which may do anything.
inline std::string_view class_name(const torch::optim::Optimizer& optimizer) {
  using namespace torch::optim;
  const std::type_info& type = typeid(optimizer);
  return type == typeid(AdamW)     ? "AdamW"
         : type == typeid(Adam)    ? "Adam"
         : type == typeid(SGD)     ? "SGD"
         : type == typeid(RMSprop) ? "RMSprop"
         : type == typeid(Adagrad) ? "Adagrad"
         : type == typeid(LBFGS)   ? "LBFGS"
                                   : "";
}

/// Global settings times the factors of a tensor.
/// PyTorch shrinks by rate · decay, so that an independent decay is divided by the factor of the rate.
template <class Options>
Options scaled(const PlannedModule& planned, std::size_t i, const Options& global) {
  const dialect::TensorFactors& factors = planned.named.factors[i];
  const bool independent =
      planned.named.plan.decay == DecayForm::independent && factors.learning_rate > 0;
  Options own = global;
  own.lr(global.lr() * factors.learning_rate);
  own.weight_decay(global.weight_decay() * factors.weight_decay /
                   (independent ? factors.learning_rate : 1));
  if constexpr (!is_sgd<Options>) {
    own.eps(global.eps() * factors.epsilon);
  }
  return own;
}

}  // namespace detail

/// Groups for AdamW, Adam or SGD, one for all tensors of the same rate, decay and epsilon. Every field of every
/// group is set, so that no default of the optimizer applies.
/// Requires: `global`: AdamWOptions, AdamOptions (for l2 decay, or none) or SGDOptions, with the rate, decay and epsilon that the plan's factors
///           multiply, and whatever else all groups have in common.
/// Throws:   InvalidInput for the options of another optimizer than the plan's; std::invalid_argument
///           naming every parameter that is frozen.
template <class Options>
std::vector<torch::optim::OptimizerParamGroup> param_groups(const PlannedModule& planned,
                                                            const Options& global) {
  detail::require_options(planned.named.plan, global);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  std::vector<std::size_t> first;
  std::vector<std::string> frozen;
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    if (!planned.parameters[i].requires_grad()) {
      frozen.push_back(planned.tensor(i).name +
                       ": frozen (requires_grad is false), but the plan trains it");
    }
    std::size_t g = 0;
    while (g < first.size() && !planned.named.factors[first[g]].same(planned.named.factors[i])) {
      ++g;
    }
    if (g == first.size()) {
      first.push_back(i);
      groups.emplace_back(std::vector<at::Tensor>{},
                          std::make_unique<Options>(detail::scaled(planned, i, global)));
    }
    groups[g].params().push_back(planned.parameters[i]);
  }
  messages::require_none("the module cannot be trained by the plan:", frozen);
  return groups;
}

/// Sets the global learning rate: that of each group is its tensors' factor times it. Schedulers of
/// LibTorch multiply, and keep the ratios without it.
/// Throws:   InvalidInput, and changes nothing, when a group has no parameter of the plan, as all groups of
///           another model's optimizer, or several whose rates differ.
inline void set_lr(torch::optim::Optimizer& optimizer, const PlannedModule& planned, double lr) {
  std::map<const void*, double> factor;
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    factor[planned.parameters[i].unsafeGetTensorImpl()] = planned.named.factors[i].learning_rate;
  }
  std::vector<std::pair<torch::optim::OptimizerParamGroup*, double>> rates;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    torch::optim::OptimizerParamGroup& group = optimizer.param_groups()[g];
    if (group.params().empty()) continue;
    const auto refuse = [&](const std::string& what) {
      throw InvalidInput("optimizer", "(group " + std::to_string(g) + " has " + what + ")",
                         "the groups of this module", "make them by param_groups(planned, …)");
    };
    std::optional<double> own;
    for (const at::Tensor& parameter : group.params()) {
      const auto found = factor.find(parameter.unsafeGetTensorImpl());
      if (found == factor.end()) continue;
      if (own && *own != found->second) refuse("parameters with different rates");
      own = found->second;
    }
    if (!own) refuse("no parameter of the plan");
    rates.emplace_back(&group, lr * *own);
  }
  for (const auto& [group, rate] : rates) group->options().set_lr(rate);
}

/// A line for each tensor that the optimizer uses with another rate, decay or epsilon than the plan's, each that
/// is frozen, in no group or in two, and each parameter of the optimizer that is not in the plan; tensors that
/// differ in the layer alone share one, see folded().
/// Accuracy: compares to 1e-5 relative, since optimizers may keep floats.
/// Throws:   InvalidInput where the plan is for another optimizer than Options are of, for another of LibTorch's
///           optimizers, and for groups with options of another. Without decay Adam and AdamW do the same.
template <class Options>
std::vector<std::string> optimizer_problems(const torch::optim::Optimizer& optimizer,
                                            const PlannedModule& planned, const Options& global) {
  detail::require_options(planned.named.plan, global);
  const std::string_view own = detail::class_name(optimizer);
  if (!own.empty() && own != detail::optimizer_name<Options>) {
    throw InvalidInput("optimizer", std::string(own), std::string(detail::optimizer_name<Options>),
                       "groups with options of another optimizer train otherwise than either");
  }
  std::map<const void*, std::vector<const Options*>> held;
  std::map<const void*, std::string> sizes;
  for (const torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    const auto* options = dynamic_cast<const Options*>(&group.options());
    if (options == nullptr) {
      throw InvalidInput("options", "those of another optimizer",
                         "those of this optimizer's groups");
    }
    for (const at::Tensor& parameter : group.params()) {
      held[parameter.unsafeGetTensorImpl()].push_back(options);
      sizes[parameter.unsafeGetTensorImpl()] = messages::sizes_text(parameter.sizes().vec());
    }
  }
  std::vector<std::string> problems = detail::resized(planned);
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    const std::string& name = planned.tensor(i).name;
    const auto groups = held.extract(planned.parameters[i].unsafeGetTensorImpl());
    if (!planned.parameters[i].requires_grad()) {
      problems.push_back(name + ": frozen (requires_grad is false)");
    }
    const std::size_t places = groups.empty() ? 0 : groups.mapped().size();
    if (places != 1) {
      problems.push_back(name + ": in " + std::to_string(places) +
                         " places of the optimizer: expected one");
      continue;
    }
    const Options& live = *groups.mapped().front();
    const Options expected = detail::scaled(planned, i, global);
    const auto compare = [&](const char* what, double value, double wanted) {
      if (std::abs(value - wanted) <= 1e-5 * std::abs(wanted)) return;
      problems.push_back(name + ": " + what + " = " + numeric::number_text(value) + ": expected " +
                         numeric::number_text(wanted));
    };
    compare("lr", live.lr(), expected.lr());
    compare("weight_decay", live.weight_decay(), expected.weight_decay());
    if constexpr (!detail::is_sgd<Options>) {
      compare("eps", live.eps(), expected.eps());
    }
  }
  for (const auto& [parameter, groups] : held) {
    problems.push_back("a parameter of shape " + sizes[parameter] +
                       ": in the optimizer, but not in the plan");
  }
  return messages::folded(problems);
}

/// Compares what the optimizer uses with the plan; call it once more after the scheduler's first step, with the
/// rate that `global` then has.
/// Throws:   std::invalid_argument with all of optimizer_problems().
template <class Options>
void check_optimizer(const torch::optim::Optimizer& optimizer, const PlannedModule& planned,
                     const Options& global) {
  messages::require_none("the optimizer does not follow the plan:",
                         optimizer_problems(optimizer, planned, global));
}

}  // namespace scalewise::libtorch
