// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/dialect/all.hpp"
#include "scalewise/dialect/classify.hpp"
#include "scalewise/dialect/pattern_index.hpp"
#include "scalewise/dialect/wrappers.hpp"

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

/// How many of some names have a line in a dialect.
inline std::size_t lines_found(const Dialect& dialect, const std::vector<std::string>& names,
                               std::size_t skipped) {
  const PatternIndex index(dialect);
  std::size_t known = 0;
  for (const std::string& name : names) {
    if (name.size() > skipped && !index.lines_of(name.substr(skipped)).empty()) ++known;
  }
  return known;
}

/// Those that have at least half as many of the names as the one that has most, which has one in four: with what all
/// names begin with, or without it.
inline std::vector<const Dialect*> likely_dialects(const std::vector<ModelTensor>& model) {
  std::vector<std::string> names;
  names.reserve(model.size());
  for (const ModelTensor& tensor : model) names.push_back(unwrapped(tensor.name));
  std::vector<std::string> prefixes = common_prefixes(names);
  prefixes.insert(prefixes.begin(), "");
  for (const std::string& prefix : prefixes) {
    std::vector<std::pair<const Dialect*, std::size_t>> counted;
    std::size_t most = 0;
    for (const Dialect* dialect : all_dialects) {
      counted.emplace_back(dialect, lines_found(*dialect, names, prefix.size()));
      most = (std::max)(most, counted.back().second);
    }
    if (most == 0 || 4 * most < names.size()) continue;
    std::vector<const Dialect*> likely;
    for (const auto& [dialect, known] : counted) {
      if (2 * known >= most) likely.push_back(dialect);
    }
    return likely;
  }
  return {};
}

/// The problem of names that no code base has.
inline std::string unknown_names(const std::vector<ModelTensor>& model) {
  std::string text = "no code base is known that has " +
                     (model.empty() ? std::string("no tensors")
                                    : "names such as " + printable(model.front().name));
  std::vector<std::string> names;
  for (const ModelTensor& tensor : model) names.push_back(tensor.name);
  const std::vector<std::string> prefixes = common_prefixes(names);
  if (!prefixes.empty()) text += "; all begin with " + printable(prefixes.back());
  return text + " (hint: describe them in a file for --names)";
}

}  // namespace detail

/// Tries all dialects whose lines have some of the names. Where none has as many as one in four, no code base is
/// claimed: the assignment has no dialect, and its one problem says what the names are like.
/// Time:     linear in the number of tensors, times that of the dialects that have most of the names
inline Detection nearest_dialect(const Shape& shape, const std::vector<ModelTensor>& model,
                                 const std::vector<Extra>& extras = {}) {
  Detection found;
  const Dialect* nearest = nullptr;
  for (const Dialect* dialect : detail::likely_dialects(model)) {
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
  if (nearest == nullptr) {
    found.assignment = {};
    found.assignment.problems.push_back(detail::unknown_names(model));
    return found;
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
  if (best.dialect.empty()) {
    throw InvalidInput("tensors", names, "those of one dialect", best.problems.front());
  }
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
