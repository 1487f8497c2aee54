// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/plan/initial_values.hpp"

/// Plans for modules of LibTorch. The names below are those of python/scalewise.py.
namespace scalewise::libtorch {

/// A plan and the parameters of a module that it is for; they are the module's own, not copies.
struct PlannedModule {
  dialect::NamedPlan named;
  std::vector<at::Tensor> parameters;  // one per tensor of the assignment

  const dialect::OwnerTensor& tensor(std::size_t i) const { return named.assignment.tensors[i]; }
};

namespace detail {

/// The views of an entry in its tensor, and the axis along which they follow each other.
inline std::pair<std::vector<at::Tensor>, std::int64_t> views_of(const at::Tensor& tensor,
                                                                 const dialect::OwnedPart& part) {
  std::vector<at::Tensor> views{tensor};
  std::int64_t cut = 0;
  for (const dialect::AxisRuns& axis : part.select) {
    if (axis.runs.size() > 1) cut = axis.axis;
    std::vector<at::Tensor> narrowed;
    for (const at::Tensor& view : views) {
      for (const dialect::IndexRun& run : axis.runs) {
        narrowed.push_back(view.narrow(axis.axis, run.begin, run.count));
      }
    }
    views = std::move(narrowed);
  }
  return {views, cut};
}

/// An entry's numbers: a view where they lie together, otherwise a copy.
inline at::Tensor part_of(const at::Tensor& tensor, const dialect::OwnedPart& part) {
  const auto [views, cut] = views_of(tensor, part);
  return views.size() == 1 ? views.front() : at::cat(views, cut);
}

}  // namespace detail

/// Puts a plan and a module together: every parameter of the module is what the dialect says its name is.
/// Throws:   std::invalid_argument with a line for every problem that dialect::classify() and
///           dialect::name_plan() find, and for every tensor of the plan that is a buffer.
inline PlannedModule plan_module(const torch::nn::Module& module, Plan plan,
                                 const dialect::Dialect& names) {
  std::vector<dialect::ModelTensor> model;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& item : module.named_parameters()) {
    model.push_back({item.key(), item.value().sizes().vec(), item.value().unsafeGetTensorImpl()});
    by_name.emplace(item.key(), item.value());
  }
  for (const auto& item : module.named_buffers()) {
    model.push_back({item.key(), item.value().sizes().vec(), item.value().unsafeGetTensorImpl()});
  }
  dialect::Assignment assignment = classify(names, plan.shape, model, plan.extras);
  PlannedModule planned{name_plan(std::move(plan), std::move(assignment)), {}};
  for (const dialect::OwnerTensor& tensor : planned.named.assignment.tensors) {
    if (by_name.contains(tensor.name)) continue;
    planned.named.assignment.problems.push_back(
        tensor.name + ": a buffer: expected a parameter, as the plan trains it");
  }
  messages::require_none(
      "the module is not as the plan and " + planned.named.assignment.dialect + " say:",
      planned.named.assignment.problems);
  for (const dialect::OwnerTensor& tensor : planned.named.assignment.tensors) {
    planned.parameters.push_back(by_name.at(tensor.name));
  }
  return planned;
}

/// Puts a plan and a module together whose parameters have the names of the plan's tensors, as after
/// from_descriptions().
/// Throws:   std::invalid_argument with a line for every tensor that one of them lacks, that has another number of
///           entries, or that is another one under a second name.
inline PlannedModule plan_module(const torch::nn::Module& module, Plan plan) {
  dialect::Assignment own;
  for (const Entry& entry : plan.entries) {
    own.tensors.push_back({entry.name, {entry.rows, entry.columns}, false, {{entry.name, {}}}, {}});
  }
  PlannedModule planned{name_plan(std::move(plan), std::move(own)), {}};
  std::vector<std::string> problems;
  std::map<const void*, std::string> names;  // of the plan's tensors
  const auto parameters = module.named_parameters();
  for (const Entry& entry : planned.named.plan.entries) {
    const at::Tensor* parameter = parameters.find(entry.name);
    if (parameter == nullptr) {
      problems.push_back(entry.name + ": missing in the module");
      continue;
    }
    if (parameter->numel() != entry.size()) {
      problems.push_back(entry.name + ": " + std::to_string(parameter->numel()) +
                         " numbers: expected " + std::to_string(entry.size()));
    }
    const auto [first, is_new] = names.emplace(parameter->unsafeGetTensorImpl(), entry.name);
    if (!is_new) problems.push_back(entry.name + ": the same parameter as " + first->second);
    planned.parameters.push_back(*parameter);
  }
  for (const auto& item : parameters) {
    if (names.contains(item.value().unsafeGetTensorImpl()) || !item.value().requires_grad())
      continue;  // what is fixed
    problems.push_back(item.key() + ": not in the plan");
  }
  messages::require_none("the module is not as the plan says:", problems);
  return planned;
}

namespace detail {

/// Which tensors match one of the patterns.
/// Throws:   InvalidInput for a pattern without a tensor.
inline std::vector<bool> kept(const PlannedModule& planned, const std::vector<std::string>& keep) {
  std::vector<bool> found;
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    const Entry& entry = planned.named.plan.at(planned.tensor(i).parts.front().entry);
    found.push_back(entry.distribution == Distribution::own);
  }
  for (const std::string& pattern : keep) {
    bool used = false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!scalewise::detail::matches_glob(pattern, planned.tensor(i).name)) continue;
      used = found[i] = true;
    }
    if (used) continue;
    throw InvalidInput("keep", messages::printable(pattern),
                       "a pattern of names of the plan's tensors");
  }
  return found;
}

}  // namespace detail

/// Draws every tensor from its planned distribution, in place; rows of padding become zero. Tensors whose names match
/// a pattern of `keep` stay as they are, such as "*.A_log". The reference transformer has the same numbers after the
/// same seed.
/// Equation: InitialValues
/// Units:    base_deviation: standard deviation of the base model's matrices, under a relative rule
/// Throws:   InvalidInput, before anything is written, when the rule is relative and it is missing, when
///           it is negative or not finite, and for a pattern without a tensor.
inline void initialize(PlannedModule& planned, std::uint64_t seed,
                       std::optional<double> base_deviation = {},
                       const std::vector<std::string>& keep = {}) {
  const Plan& plan = planned.named.plan;
  if (plan.reference == Reference::base && !base_deviation) {
    throw InvalidInput("base_deviation", "none", "the base model's standard deviation",
                       plan.rule + "'s variances are factors on the base model's");
  }
  if (base_deviation && !(std::isfinite(*base_deviation) && *base_deviation >= 0)) {
    throw InvalidInput("base_deviation", numeric::number_text(*base_deviation),
                       "a finite number, 0 or greater");
  }
  const std::vector<bool> stays = detail::kept(planned, keep);
  const double deviation = plan.reference == Reference::base ? *base_deviation : 1;
  const torch::NoGradGuard no_grad;
  const auto entries = dialect::entries_by_name(plan);
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    if (stays[i]) continue;
    const dialect::OwnerTensor& tensor = planned.tensor(i);
    for (const dialect::AxisRuns& axis : tensor.padding) {
      for (const dialect::IndexRun& run : axis.runs) {
        planned.parameters[i].narrow(axis.axis, run.begin, run.count).zero_();
      }
    }
    for (const dialect::OwnedPart& part : tensor.parts) {
      const Entry& entry = *entries.at(part.entry);
      InitialValues numbers(entry, seed, deviation);
      at::Tensor values = at::empty({entry.rows, entry.columns}, at::kDouble);
      numbers.next({values.data_ptr<double>(), static_cast<std::size_t>(entry.size())});
      if (tensor.transposed) values = values.t().contiguous();
      const auto [views, cut] = detail::views_of(planned.parameters[i], part);
      std::vector<std::int64_t> sizes = views.front().sizes().vec();
      std::vector<std::int64_t> lengths;
      for (const at::Tensor& view : views) lengths.push_back(view.dim() > 0 ? view.size(cut) : 1);
      if (views.size() > 1) {
        sizes[static_cast<std::size_t>(cut)] = 0;
        for (const std::int64_t length : lengths) sizes[static_cast<std::size_t>(cut)] += length;
      }
      std::int64_t begin = 0;
      values = values.reshape(sizes);
      for (std::size_t v = 0; v < views.size(); begin += lengths[v++]) {
        views[v].copy_(values.dim() > 0 ? values.narrow(cut, begin, lengths[v]) : values);
      }
    }
  }
}

namespace detail {

template <class Options>
inline constexpr bool is_sgd = std::is_same_v<Options, torch::optim::SGDOptions>;

/// PyTorch's Adam adds the decay to the gradient, its AdamW does not.
template <class Options>
inline constexpr bool is_adam = std::is_same_v<Options, torch::optim::AdamOptions>;

/// Throws:   InvalidInput for the options of another optimizer than the plan's.
template <class Options>
void require_options(const Plan& plan) {
  static_assert(
      is_sgd<Options> || is_adam<Options> || std::is_same_v<Options, torch::optim::AdamWOptions>,
      "plans are for AdamW, Adam and SGD");
  if (plan.optimizer != sgd && plan.optimizer != adamw) {
    throw InvalidInput("optimizer", std::string(plan.optimizer.name),
                       "one that LibTorch has: adamw or sgd");
  }
  const char* wanted = plan.optimizer == sgd         ? "SGDOptions"
                       : plan.decay == DecayForm::l2 ? "AdamOptions"
                                                     : "AdamWOptions";
  const char* given = is_sgd<Options>    ? "SGDOptions"
                      : is_adam<Options> ? "AdamOptions"
                                         : "AdamWOptions";
  if (std::string_view(given) == wanted) return;
  throw InvalidInput("options", given, wanted,
                     "the plan is for " + std::string(plan.optimizer.name) + " with " +
                         std::string(word(policy::decay_words, plan.decay)) + " decay");
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
/// Requires: `global`: AdamWOptions, AdamOptions (for l2 decay) or SGDOptions, with the rate, decay and epsilon that the plan's factors
///           multiply, and whatever else all groups have in common.
/// Throws:   InvalidInput for the options of another optimizer than the plan's; std::invalid_argument
///           naming every parameter that is frozen.
template <class Options>
std::vector<torch::optim::OptimizerParamGroup> param_groups(const PlannedModule& planned,
                                                            const Options& global) {
  detail::require_options<Options>(planned.named.plan);
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
///           another model's optimizer.
inline void set_lr(torch::optim::Optimizer& optimizer, const PlannedModule& planned, double lr) {
  std::map<const void*, double> factor;
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    factor[planned.parameters[i].unsafeGetTensorImpl()] = planned.named.factors[i].learning_rate;
  }
  std::vector<std::pair<torch::optim::OptimizerParamGroup*, double>> rates;
  for (std::size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    torch::optim::OptimizerParamGroup& group = optimizer.param_groups()[g];
    if (group.params().empty()) continue;
    auto found = factor.end();
    for (const at::Tensor& parameter : group.params()) {
      found = factor.find(parameter.unsafeGetTensorImpl());
      if (found != factor.end()) break;
    }
    if (found == factor.end()) {
      throw InvalidInput("optimizer",
                         "(group " + std::to_string(g) + " has no parameter of the plan)",
                         "the groups of this module", "make them by param_groups(planned, …)");
    }
    rates.emplace_back(&group, lr * found->second);
  }
  for (const auto& [group, rate] : rates) group->options().set_lr(rate);
}

/// A line for each tensor that the optimizer uses with another rate, decay or epsilon than the plan's, each that
/// is frozen, in no group or in two, and each parameter of the optimizer that is not in the plan; tensors that
/// differ in the layer alone share one, see folded().
/// Accuracy: compares to 1e-5 relative, since optimizers may keep floats.
/// Throws:   InvalidInput where the plan is for another optimizer than Options are of, and for
///           groups with options of another.
template <class Options>
std::vector<std::string> optimizer_problems(const torch::optim::Optimizer& optimizer,
                                            const PlannedModule& planned, const Options& global) {
  detail::require_options<Options>(planned.named.plan);
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
  std::vector<std::string> problems;
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

/// Compares what the optimizer uses with the plan; call it once more after the scheduler's first step.
/// Throws:   std::invalid_argument with all of optimizer_problems().
template <class Options>
void check_optimizer(const torch::optim::Optimizer& optimizer, const PlannedModule& planned,
                     const Options& global) {
  messages::require_none("the optimizer does not follow the plan:",
                         optimizer_problems(optimizer, planned, global));
}

}  // namespace scalewise::libtorch
