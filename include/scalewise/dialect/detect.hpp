// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"

namespace scalewise::dialect {

/// The dialect that knows most of the names, of several the one with the fewest problems, and of those the first:
/// a shape that is not the model's has problems under every dialect.
struct Detection {
  Assignment assignment;
  std::vector<std::string> exact;  // ids of those that leave nothing over
};

namespace detail {

/// How many tensors of a model have a meaning, whatever their sizes.
inline std::size_t known_names(const Assignment& a) {
  return a.tensors.size() + a.aliases.size() + a.buffers.size() + a.unplanned.size();
}

}  // namespace detail

/// Tries all dialects.
inline Detection nearest_dialect(const Shape& shape, const std::vector<ModelTensor>& model,
                                 const std::vector<Extra>& extras = {}) {
  Detection found;
  const Dialect* nearest = nullptr;
  for (const Dialect* dialect : all_dialects) {
    Assignment assignment = detail::Classifier(*dialect, shape, extras).run(model, false);
    if (assignment.problems.empty()) found.exact.push_back(assignment.dialect);
    const std::size_t known = detail::known_names(assignment);
    const std::size_t most = detail::known_names(found.assignment);
    const bool fewer = assignment.problems.size() < found.assignment.problems.size();
    if (nearest == nullptr || known > most || (known == most && fewer)) {
      nearest = dialect;
      found.assignment = std::move(assignment);
    }
  }
  if (found.exact.empty()) found.assignment = classify(*nearest, shape, model, extras);
  return found;
}

/// The one dialect that leaves nothing over.
/// Throws:   InvalidInput where several leave nothing over, naming them, or none does, naming the nearest
///           and the first of its problems.
inline Assignment detect(const Shape& shape, const std::vector<ModelTensor>& model,
                         const std::vector<Extra>& extras = {}) {
  Detection found = nearest_dialect(shape, model, extras);
  const Assignment& best = found.assignment;
  if (found.exact.size() == 1) return std::move(found.assignment);
  const std::string names = std::to_string(model.size()) + " names";
  if (found.exact.empty()) {
    throw InvalidInput("tensors", names,
                       "those of one dialect; the nearest is " + best.dialect + ", except for " +
                           std::to_string(best.problems.size()) +
                           " problems, the first: " + best.problems.front(),
                       "name the dialect to see all");
  }
  std::string several;
  for (const std::string& id : found.exact) several += (several.empty() ? "" : ", ") + id;
  throw InvalidInput("tensors", names, "those of one dialect, but they fit " + several,
                     "name the dialect");
}

}  // namespace scalewise::dialect
