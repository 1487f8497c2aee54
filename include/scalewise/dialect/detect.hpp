// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"

namespace scalewise::dialect {

/// The one dialect that leaves nothing over.
/// Throws:   InvalidInput where several leave nothing over, naming them, or none does, naming the one
///           with the fewest problems and the first of them.
inline Assignment detect(const Shape& shape, const std::vector<ModelTensor>& model) {
  std::vector<Assignment> exact;
  Assignment best;
  for (const Dialect* dialect : all_dialects) {
    Assignment assignment = classify(*dialect, shape, model);
    if (assignment.problems.empty()) {
      exact.push_back(std::move(assignment));
    } else if (best.dialect.empty() || assignment.problems.size() < best.problems.size()) {
      best = std::move(assignment);
    }
  }
  if (exact.size() == 1) return std::move(exact.front());
  if (exact.empty()) {
    throw InvalidInput("tensors", std::to_string(model.size()) + " names",
                       "those of one dialect; the nearest is " + best.dialect + ", but for " +
                           std::to_string(best.problems.size()) +
                           " problems, the first: " + best.problems.front(),
                       "name the dialect to see all");
  }
  std::string names = exact.front().dialect;
  for (std::size_t i = 1; i < exact.size(); ++i) names += ", " + exact[i].dialect;
  throw InvalidInput("tensors", std::to_string(model.size()) + " names",
                     "those of one dialect, but they fit " + names, "name the dialect");
}

}  // namespace scalewise::dialect
