// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/classify.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/plan/plan.hpp"

namespace scalewise::dialect {

/// The settings of an optimizer for one tensor.
/// Units:    factors on the global values, the decay in the form of the plan
struct TensorFactors {
  double learning_rate = 1;
  double weight_decay = 1;
  double epsilon = 1;
  Optimizer optimizer = adamw;

  /// True where two formulas give the same number, up to rounding.
  static bool same(double a, double b) {
    const double difference = a < b ? b - a : a - b;
    return difference <= 1e-12 * (b < 0 ? -b : b);
  }
  bool same(const TensorFactors& other) const {
    return same(learning_rate, other.learning_rate) && same(weight_decay, other.weight_decay) &&
           same(epsilon, other.epsilon) && optimizer == other.optimizer;
  }
};

/// The matrices that an optimizer cuts out of a tensor before it normalizes them: none, or query, key and
/// value. What it does not cut is one matrix to it, in the base as well.
/// Source:   Megatron-LM 000a717, TensorParallelMuon.orthogonalize: --muon-split-qkv cuts linear_qkv into the rows of
///           all queries, keys and values
enum class Cut { none, qkv };
inline constexpr messages::Spelling<Cut, 2> cut_words{{{Cut::none, "none"}, {Cut::qkv, "qkv"}}};

/// A plan and the tensors of a code base that it is for.
struct NamedPlan {
  Plan plan;
  Assignment assignment;
  std::vector<TensorFactors> factors;  // one per tensor of the assignment
  std::optional<Cut> cut = {};         // of an optimizer that normalizes matrices, if it was said
};

/// The entries of a plan by their names.
inline std::map<std::string_view, const Entry*> entries_by_name(const Plan& plan) {
  std::map<std::string_view, const Entry*> entries;
  for (const Entry& entry : plan.entries) entries.emplace(entry.name, &entry);
  return entries;
}

namespace detail {

inline TensorFactors factors_of(const Entry& entry) {
  return {entry.learning_rate.value, entry.weight_decay.value, entry.epsilon.value,
          entry.optimizer};
}

/// Why two entries cannot have factors in common; nothing where they can.
inline std::string disagreement(const Entry& a, const Entry& b) {
  const bool heads = a.group != b.group && role_of(a.group) == Role::hidden && a.layer == b.layer &&
                     a.fan_in == b.fan_in && a.fan_out != b.fan_out;
  const auto differ = [&](const char* what, double of_a, double of_b) {
    return a.name + " and " + b.name + " are parts of it, but want different " + what + " (" +
           numeric::number_text(of_a) + " and " + numeric::number_text(of_b) +
           " times the global one; hint: " +
           (heads ? "take a base with as many queries to a key, as --base-width makes it, or "
                  : "") +
           "split the tensor, as an optimizer has one for each)";
  };
  const TensorFactors of_a = factors_of(a), of_b = factors_of(b);
  if (!TensorFactors::same(of_a.learning_rate, of_b.learning_rate))
    return differ("learning rates", of_a.learning_rate, of_b.learning_rate);
  if (!TensorFactors::same(of_a.weight_decay, of_b.weight_decay))
    return differ("weight decays", of_a.weight_decay, of_b.weight_decay);
  if (!TensorFactors::same(of_a.epsilon, of_b.epsilon))
    return differ("epsilons", of_a.epsilon, of_b.epsilon);
  return "";
}

/// The sizes of a matrix, as an optimizer sees it.
struct Fans {
  double in = 0;
  double out = 0;
};

/// Why entries cannot be parts of one tensor.
class PartProblems {
 public:
  PartProblems(const Plan& plan, std::optional<Cut> cut) : cut_(cut) {
    if (plan.optimizer.normalization != policy::Normalization::by_matrix) return;
    const Shape base = plan.base.value_or(plan.shape);
    const auto add = [&](const Tensor& tensor) {
      base_.emplace(kind(tensor),
                    Fans{static_cast<double>(tensor.rows), static_cast<double>(tensor.columns)});
    };
    architecture::for_each_tensor(base, base, add);
    for (const Tensor& tensor : architecture::extra_tensors(plan.extras, base)) add(tensor);
  }

  /// The result is empty where they have factors in common.
  std::string problem(const std::vector<const Entry*>& parts) const {
    const Entry& first = *parts.front();
    if (parts.size() > 1 && first.optimizer.normalization == policy::Normalization::by_matrix) {
      if (!cut_) return how_to_cut(first, *parts[1]);
      std::string text = cuts_out(parts) ? "" : problem_of_one_matrix(parts);
      if (!text.empty()) return text;
    }
    for (const Entry* part : parts) {
      std::string text = disagreement(first, *part);
      if (!text.empty()) return text;
    }
    return "";
  }

 private:
  /// A name without the number of its layer, of which the base may have fewer.
  template <class Named>
  static std::string kind(const Named& tensor) {
    const std::string number = "." + std::to_string(tensor.layer) + ".";
    const std::size_t at = tensor.name.find(number);
    if (at == std::string::npos) return tensor.name;
    return tensor.name.substr(0, at) + tensor.name.substr(at + number.size() - 1);
  }

  static std::string how_to_cut(const Entry& a, const Entry& b) {
    return a.name + " and " + b.name + " are parts of it, but " + std::string(a.optimizer.name) +
           " normalizes whole matrices (hint: --cut qkv, if it cuts query, key and value out "
           "itself, as Megatron-LM's does; --cut none, if it takes all as one matrix; or split the "
           "tensor)";
  }

  bool cuts_out(const std::vector<const Entry*>& parts) const {
    return *cut_ == Cut::qkv && std::all_of(parts.begin(), parts.end(), [](const Entry* part) {
      return part->group == Group::query || part->group == Group::key ||
             part->group == Group::value;
    });
  }

  /// One matrix has the rate of its parts where all outputs, and the optimizer's own factor with them, are as
  /// many times the base's. Layers of a slab are matrices of their own.
  std::string problem_of_one_matrix(const std::vector<const Entry*>& parts) const {
    const Entry& first = *parts.front();
    const Fans of_base = in_base(first);
    const double growth = first.fan_out / of_base.out;
    double outputs = 0;
    for (const Entry* part : parts) {
      const double own_growth = part->fan_out / in_base(*part).out;
      if (!TensorFactors::same(growth, own_growth)) {
        return one_matrix(first, *part, "their outputs are", growth, own_growth);
      }
      if (part->layer == first.layer && part->stack == first.stack) outputs += part->fan_out;
    }
    const auto factor = [&](double out) {
      return policy::own_factor(first.optimizer, first.fan_in, out) /
             policy::own_factor(first.optimizer, of_base.in, out / growth);
    };
    const double of_part = factor(first.fan_out), of_whole = factor(outputs);
    if (TensorFactors::same(of_part, of_whole)) return "";
    return one_matrix(first, *parts[1], "its own factors for one and both are", of_part, of_whole);
  }

  static std::string one_matrix(const Entry& a, const Entry& b, const char* what, double x,
                                double y) {
    return a.name + " and " + b.name + " are one matrix to " + std::string(a.optimizer.name) +
           ", but " + what + " " + numeric::number_text(x) + " and " + numeric::number_text(y) +
           " times the base's (hint: split the tensor)";
  }

  /// A tensor that the base lacks has no larger or smaller one there.
  Fans in_base(const Entry& entry) const {
    const auto found = base_.find(kind(entry));
    return found == base_.end() ? Fans{entry.fan_in, entry.fan_out} : found->second;
  }

  std::optional<Cut> cut_;
  std::map<std::string, Fans> base_;  // by the kind of tensor
};

}  // namespace detail

/// A plan for the tensors of a model, as classify() found them. Tensors whose parts want different
/// rates, decays or epsilons are added to the problems of the assignment, and those with several matrices for an
/// optimizer that normalizes them, unless `cut` says what it does.
/// Requires: an assignment of the plan's shape.
inline NamedPlan name_plan(Plan plan, Assignment assignment, std::optional<Cut> cut = {}) {
  NamedPlan named{std::move(plan), std::move(assignment), {}, cut};
  const auto entries = entries_by_name(named.plan);
  const detail::PartProblems part_problems(named.plan, cut);
  named.factors.reserve(named.assignment.tensors.size());
  for (const OwnerTensor& tensor : named.assignment.tensors) {
    std::vector<const Entry*> parts;
    for (const OwnedPart& part : tensor.parts) parts.push_back(entries.at(part.entry));
    named.factors.push_back(detail::factors_of(*parts.front()));
    const std::string problem = part_problems.problem(parts);
    if (!problem.empty()) named.assignment.problems.push_back(tensor.name + ": " + problem);
  }
  return named;
}

/// A plan for a code base's usual names.
inline NamedPlan name_plan(Plan plan, const Dialect& dialect, std::optional<Cut> cut = {}) {
  Assignment usual = usual_tensors(dialect, plan.shape, plan.extras);
  return name_plan(std::move(plan), std::move(usual), cut);
}

}  // namespace scalewise::dialect
