// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
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

/// A text with a star for each number between dots or slashes: "blk.*.ffn_up" of "blk.3.ffn_up".
inline std::string with_stars(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string starred;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = i > 0 && (text[i - 1] == '.' || text[i - 1] == '/');
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (begins && end > i && end < text.size() && (text[end] == '.' || text[end] == '/')) {
      starred += '*';
      i = end - 1;
    } else {
      starred += text[i];
    }
  }
  return starred;
}

/// Names that differ in the layer alone, as one of them and their number.
struct NamesAlike {
  std::string name;
  std::size_t count = 0;
};

inline std::vector<NamesAlike> names_alike(const std::vector<ModelTensor>& model) {
  std::vector<NamesAlike> alike;
  std::unordered_map<std::string, std::size_t> places;
  for (const ModelTensor& tensor : model) {
    std::string name = unwrapped(tensor.name);
    const auto [at, is_first] = places.emplace(with_stars(name), alike.size());
    if (is_first) alike.push_back({std::move(name), 0});
    ++alike[at->second].count;
  }
  return alike;
}

/// The number of names that have a line in a dialect, after their first characters.
inline std::size_t lines_found(const Dialect& dialect, const std::vector<NamesAlike>& names,
                               std::size_t skipped) {
  const PatternIndex index(dialect);
  std::size_t known = 0;
  for (const auto& [name, count] : names) {
    const bool found = name.size() > skipped && !index.lines_of(name.substr(skipped)).empty();
    if (found) known += count;
  }
  return known;
}

/// Dialects that know at least half as many of the names as the one that knows most, which knows one in four: with what
/// all names begin with, or without it.
inline std::vector<const Dialect*> likely_dialects(const std::vector<ModelTensor>& model) {
  const std::vector<NamesAlike> names = names_alike(model);
  std::vector<std::string> texts;
  texts.reserve(names.size());
  for (const NamesAlike& alike : names) texts.push_back(alike.name);
  std::vector<std::string> prefixes = common_prefixes(texts);
  prefixes.insert(prefixes.begin(), "");
  for (const std::string& prefix : prefixes) {
    std::vector<std::pair<const Dialect*, std::size_t>> counted;
    std::size_t most = 0;
    for (const Dialect* dialect : all_dialects) {
      counted.emplace_back(dialect, lines_found(*dialect, names, prefix.size()));
      most = (std::max)(most, counted.back().second);
    }
    if (most == 0 || 4 * most < model.size()) continue;
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
  const std::vector<NamesAlike> names = names_alike(model);
  if (names.empty()) return "no tensors";
  NamesAlike most;
  std::vector<std::string> texts;
  for (const NamesAlike& alike : names) {
    if (alike.count > most.count) most = alike;
    texts.push_back(alike.name);
  }
  std::string text = "no code base is known that has names such as " +
                     messages::printable(most.count > 1 ? with_stars(most.name) : most.name);
  const std::vector<std::string> prefixes = common_prefixes(texts);
  if (!prefixes.empty()) text += "; all begin with " + messages::printable(prefixes.back());
  return text + " (hint: describe them in a file for --names)";
}

}  // namespace detail

/// Tries all dialects whose lines have some of the names. Where none has as many as one in four, no code base is
/// claimed: the assignment has no dialect, and its one problem says what the names are like.
/// Time:     linear in the number of tensors, times that of the dialects that have most of the names
inline Detection nearest_dialect(const Shape& shape, const std::vector<ModelTensor>& model,
                                 const std::vector<Extra>& extras = {}) {
  Detection found;
  for (const Dialect* dialect : detail::likely_dialects(model)) {
    Assignment assignment = detail::Classifier(*dialect, shape, extras).run(model);
    if (assignment.problems.empty()) found.exact.push_back(assignment.dialect);
    const std::size_t known = detail::known_names(assignment);
    const std::size_t most = detail::known_names(found.assignment);
    const bool fewer = assignment.problems.size() < found.assignment.problems.size();
    if (found.assignment.dialect.empty() || known > most || (known == most && fewer)) {
      found.assignment = std::move(assignment);
    }
  }
  if (found.assignment.dialect.empty()) {
    found.assignment.problems.push_back(detail::unknown_names(model));
  }
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
