// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/architecture/numbered_tensors.hpp"
#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/named_plan.hpp"
#include "scalewise/libtorch/registered.hpp"
#include "scalewise/messages/problems.hpp"
#include "scalewise/plan/initial_values.hpp"

namespace scalewise::libtorch {

/// A plan and the parameters of a module that it is for; they are the module's own, not copies.
struct PlannedModule {
  dialect::NamedPlan named;
  std::vector<at::Tensor> parameters;                        // one per tensor of the assignment
  std::vector<std::pair<at::Tensor, std::int64_t>> padding;  // embeddings, and their rows that pad

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
        const std::int64_t end = run.begin + (run.count - 1) * run.step + 1;
        narrowed.push_back(view.slice(axis.axis, run.begin, end, run.step));
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

/// Rows that have no gradient, since they pad: they are zero, as LibTorch draws them.
inline std::vector<std::pair<at::Tensor, std::int64_t>> padding_rows(
    const torch::nn::Module& module) {
  std::vector<std::pair<at::Tensor, std::int64_t>> rows;
  const auto add = [&](const auto* embedding) {
    if (embedding == nullptr || !embedding->options.padding_idx()) return;
    rows.emplace_back(embedding->weight, *embedding->options.padding_idx());
  };
  for (const auto& part : module.modules(/*include_self=*/false)) {
    add(part->as<torch::nn::Embedding>());
    add(part->as<torch::nn::EmbeddingBag>());
  }
  return rows;
}

/// A line for each parameter that no longer has the sizes that were planned, as after a checkpoint of another width.
inline std::vector<std::string> resized(const PlannedModule& planned) {
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < planned.parameters.size(); ++i) {
    std::int64_t count = 1;
    for (const std::int64_t size : planned.tensor(i).shape) count *= size;
    if (planned.parameters[i].numel() == count) continue;
    problems.push_back(planned.tensor(i).name + ": " +
                       std::to_string(planned.parameters[i].numel()) + " numbers: expected " +
                       std::to_string(count) + ", as it was planned");
  }
  return problems;
}

}  // namespace detail

/// Puts a plan and a module together: every parameter of the module is what the dialect says its name is.
/// Throws:   std::invalid_argument with a line for every problem that dialect::classify() and
///           dialect::name_plan() find, for every tensor of the plan that is a buffer, and for layers that
///           compute with another tensor than the registered one.
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
  PlannedModule planned{
      name_plan(std::move(plan), std::move(assignment)), {}, detail::padding_rows(module)};
  for (std::string& problem : detail::stale_parameters(module)) {
    planned.named.assignment.problems.push_back(std::move(problem));
  }
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
///           entries, or that is another one under a second name, and for layers that compute with another
///           tensor than the registered one.
inline PlannedModule plan_module(const torch::nn::Module& module, Plan plan) {
  dialect::Assignment own;
  for (const Entry& entry : plan.entries) {
    own.tensors.push_back({entry.name, {entry.rows, entry.columns}, false, {{entry.name, {}}}, {}});
  }
  PlannedModule planned{
      name_plan(std::move(plan), std::move(own)), {}, detail::padding_rows(module)};
  std::vector<std::string> problems = detail::stale_parameters(module);
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
///           it is negative or not finite, and for a pattern without a tensor; std::invalid_argument where
///           tensors have other sizes than when they were planned.
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
  messages::require_none("the module is not as it was planned:", detail::resized(planned));
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
    for (const auto& [embedding, row] : planned.padding) {
      if (embedding.is_same(planned.parameters[i])) embedding.select(0, row).zero_();
    }
  }
}

}  // namespace scalewise::libtorch
