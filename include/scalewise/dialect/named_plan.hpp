// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
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

/// A plan and the tensors of a code base that it is for.
struct NamedPlan {
  Plan plan;
  Assignment assignment;
  std::vector<TensorFactors> factors;  // one per tensor of the assignment
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

/// Why two entries cannot be parts of one tensor; nothing where they can.
inline std::string disagreement(const Entry& a, const Entry& b) {
  const auto differ = [&](const char* what, double of_a, double of_b) {
    return a.name + " and " + b.name + " are parts of it, but want different " + what + " (" +
           number_text(of_a) + " and " + number_text(of_b) +
           " times the global one; hint: split the tensor, as an optimizer has one for each)";
  };
  if (a.optimizer.normalization == Normalization::by_matrix) {
    return a.name + " and " + b.name + " are parts of it, but " + std::string(a.optimizer.name) +
           " normalizes whole matrices (hint: split the tensor)";
  }
  const TensorFactors of_a = factors_of(a), of_b = factors_of(b);
  if (!TensorFactors::same(of_a.learning_rate, of_b.learning_rate))
    return differ("learning rates", of_a.learning_rate, of_b.learning_rate);
  if (!TensorFactors::same(of_a.weight_decay, of_b.weight_decay))
    return differ("weight decays", of_a.weight_decay, of_b.weight_decay);
  if (!TensorFactors::same(of_a.epsilon, of_b.epsilon))
    return differ("epsilons", of_a.epsilon, of_b.epsilon);
  return "";
}

}  // namespace detail

/// A plan for the tensors of a model, as classify() found them. Tensors whose parts want different
/// rates, decays or epsilons are added to the problems of the assignment.
/// Requires: an assignment of the plan's shape.
inline NamedPlan name_plan(Plan plan, Assignment assignment) {
  NamedPlan named{std::move(plan), std::move(assignment), {}};
  const auto entries = entries_by_name(named.plan);
  named.factors.reserve(named.assignment.tensors.size());
  for (const OwnerTensor& tensor : named.assignment.tensors) {
    const Entry& first = *entries.at(tensor.parts.front().entry);
    named.factors.push_back(detail::factors_of(first));
    for (const OwnedPart& part : tensor.parts) {
      if (part.entry == first.name) continue;
      const std::string text = detail::disagreement(first, *entries.at(part.entry));
      if (text.empty()) continue;
      named.assignment.problems.push_back(tensor.name + ": " + text);
      break;
    }
  }
  return named;
}

/// A plan for a code base's usual names.
inline NamedPlan name_plan(Plan plan, const Dialect& dialect) {
  Assignment usual = usual_tensors(dialect, plan.shape, plan.extras);
  return name_plan(std::move(plan), std::move(usual));
}

}  // namespace scalewise::dialect
