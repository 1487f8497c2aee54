// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/dialect/candidates.hpp"
#include "scalewise/dialect/dialect.hpp"
#include "scalewise/messages/words.hpp"

namespace scalewise::dialect::detail {

/// Lines of somebody's own dialect that no tensor can be like.
class TableProblems {
 public:
  TableProblems(const Dialect& dialect, const Shape& shape, const Candidates& candidates)
      : dialect_(dialect),
        shape_(shape),
        entries_(candidates.entries()),
        too_many_groups_(candidates.has_too_many_groups()) {
    for (const Candidate& candidate : candidates.all()) {
      once(candidate);
      if (candidate.pattern < dialect.patterns.size()) compare_parts(candidate);
    }
  }

  std::vector<std::string> take() { return std::move(found_); }

 private:
  /// A name is that of one tensor, also of those that the shape does not have.
  void once(const Candidate& candidate) {
    const std::string& entry = candidate.tensor.parts.front().entry;
    const auto [at, is_new] = names_.emplace(candidate.tensor.name, entry);
    if (!is_new) problem(candidate, "is both " + at->second + " and " + entry);
  }

  void compare_parts(const Candidate& candidate) {
    const std::vector<OwnedPart>& parts = candidate.tensor.parts;
    if (!candidate.alias_of.empty()) return;
    const Tensor& first = entries_.at(parts.front().entry);
    const Packing packing = dialect_.patterns[candidate.pattern].packing;
    if (packing == Packing::after_two && !is_table(first.group)) {
      problem(candidate, "two rows are skipped in tables alone, and not in " + first.name);
    }
    std::set<std::string_view> names;
    for (const OwnedPart& part : parts) {
      const Tensor& entry = entries_.at(part.entry);
      if (!names.insert(part.entry).second)
        return problem(candidate, "has " + entry.name + " twice");
      if (kind(entry) != kind(first) || inputs(entry) != inputs(first)) {
        return problem(candidate, first.name + " and " + entry.name +
                                      " cannot be parts of one tensor, as their sizes differ");
      }
      const std::int64_t outputs = outputs_of(entry);
      if (packing == Packing::alternating && outputs != outputs_of(first)) {
        return problem(candidate, first.name + " and " + entry.name +
                                      " cannot take turns, as one has more rows");
      }
      if (packing == Packing::key_groups && too_many_groups_) {
        return problem(candidate,
                       std::to_string(shape_.kv_heads) +
                           " key heads in each layer are more groups than can be listed");
      }
      if (packing == Packing::key_groups && outputs % shape_.kv_heads != 0) {
        return problem(candidate, entry.name + " cannot be cut into groups of key heads");
      }
    }
  }

  enum class EntryKind { vector, table, matrix };
  static EntryKind kind(const Tensor& entry) {
    return architecture::is_vector(entry.group) ? EntryKind::vector
           : is_table(entry.group)              ? EntryKind::table
                                                : EntryKind::matrix;
  }

  static std::int64_t outputs_of(const Tensor& entry) {
    return kind(entry) == EntryKind::matrix ? entry.columns : entry.rows;
  }

  /// The axis that parts of one tensor share.
  static std::int64_t inputs(const Tensor& entry) {
    switch (kind(entry)) {
      case EntryKind::vector:
        return 1;
      case EntryKind::table:
        return entry.columns;
      default:
        return entry.rows;
    }
  }

  void problem(const Candidate& candidate, const std::string& text) {
    found_.push_back(messages::printable(candidate.tensor.name) + ": " + text);
  }

  const Dialect& dialect_;
  const Shape& shape_;
  const std::map<std::string, Tensor>& entries_;
  bool too_many_groups_;
  std::map<std::string_view, std::string> names_;
  std::vector<std::string> found_;
};

}  // namespace scalewise::dialect::detail
