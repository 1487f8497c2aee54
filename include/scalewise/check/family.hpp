// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/check/scales.hpp"
#include "scalewise/files/read_file.hpp"
#include "scalewise/io/named_plan_json.hpp"
#include "scalewise/io/plan_json.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/plan/fingerprint.hpp"

namespace scalewise::check {

/// A plan and what messages call it.
struct PlanFile {
  std::string name;
  Plan plan;
};

/// Reads what `plan --format json` writes, with --names or without.
/// Throws:   InvalidInput naming the file where it has no plan.
inline PlanFile read_plan_file(const std::string& path) {
  const nlohmann::ordered_json json =
      io::parse_json(files::read_file(path, std::size_t{1} << 30U), path);
  const io::JsonReader root(json, path);
  if (root.at("schema").string() != io::named_plan_schema)
    return {path, plan_from_json(json, path)};
  root.at("plan");
  return {path, plan_from_json(json.at("plan"), path + ".plan")};
}

/// The plans of recorded models, smallest size first, and what their size is.
struct Family {
  std::string axis;  // the size of a shape, such as "d_model" or "depth"; "size" where it is none
  std::vector<Member> members;
  std::vector<std::string> unused;  // plans of sizes that were not recorded
};

namespace detail {

/// Finds the plan of each size that was recorded.
class FamilySearch {
 public:
  FamilySearch(const Records& records, const std::vector<PlanFile>& plans) : plans_(plans) {
    for (const Run& run : records.runs()) sizes_.insert(run.size);
    for (const auto& [run, fingerprint] : records.plans()) recorded_[run.size] = fingerprint;
  }

  Family run() const {
    std::map<long, std::size_t> chosen = by_fingerprint();
    const std::string axis = axis_of(chosen);
    if (chosen.size() < sizes_.size()) chosen = by_size(axis);
    Family family{axis, {}, {}};
    std::set<std::size_t> used;
    for (const auto& [size, i] : chosen) {
      family.members.push_back({size, plans_[i].plan, plans_[i].name});
      used.insert(i);
    }
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!used.contains(i)) family.unused.push_back(plans_[i].name);
    }
    return family;
  }

 private:
  std::map<long, std::size_t> by_fingerprint() const {
    std::map<long, std::size_t> found;
    for (const auto& [size, fingerprint] : recorded_) {
      for (std::size_t i = 0; i < plans_.size(); ++i) {
        if (plan::plan_fingerprint(plans_[i].plan) == fingerprint) found.emplace(size, i);
      }
    }
    return found;
  }

  static long size_of(const Plan& plan, std::string_view field) {
    long found = 0;
    architecture::for_each_size(plan.shape, [&](std::string_view name, long size) {
      if (name == field) found = size;
    });
    return found;
  }

  /// The size of a shape that is the recorded size in the most plans; of several the first, as the width
  /// is.
  std::string axis_of(const std::map<long, std::size_t>& chosen) const {
    std::string best = "size";
    std::size_t most = 0;
    architecture::for_each_size(plans_.front().plan.shape, [&](std::string_view field, long) {
      std::set<long> met;
      for (std::size_t i = 0; i < plans_.size(); ++i) {
        const long size = size_of(plans_[i].plan, field);
        const auto other = chosen.find(size);
        if (sizes_.contains(size) && (other == chosen.end() || other->second == i)) {
          met.insert(size);
        }
      }
      if (met.size() > most) {
        most = met.size();
        best = field;
      }
    });
    return best;
  }

  std::map<long, std::size_t> by_size(const std::string& axis) const {
    std::map<long, std::size_t> found;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const long size = size_of(plans_[i].plan, axis);
      if (!sizes_.contains(size)) continue;
      const auto [other, is_new] = found.emplace(size, i);
      if (is_new) continue;
      throw InvalidInput("plans",
                         messages::printable(plans_[other->second].name) + " and " +
                             messages::printable(plans_[i].name),
                         "one plan of " + axis + " " + std::to_string(size));
    }
    std::set<long> without;
    for (const long size : sizes_) {
      if (!found.contains(size)) without.insert(size);
    }
    if (without.empty()) return found;
    throw InvalidInput("size of the records", text_of(without),
                       "the width or the depth of one of the plans",
                       "there are plans of d_model " + text_of(all_of("d_model")) + " and depth " +
                           text_of(all_of("depth")));
  }

  std::set<long> all_of(std::string_view field) const {
    std::set<long> all;
    for (const PlanFile& file : plans_) all.insert(size_of(file.plan, field));
    return all;
  }

  static std::string text_of(const std::set<long>& all) {
    std::string text;
    for (const long size : all) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return text;
  }

  const std::vector<PlanFile>& plans_;
  std::set<long> sizes_;
  std::map<long, std::string> recorded_;
};

}  // namespace detail

/// The family that records are judged by. A plan belongs to the size whose records have its fingerprint;
/// without one, to its own width or depth, whichever the recorded sizes are.
/// Throws:   InvalidInput for no plans, two plans of one size, and a recorded size without a plan.
inline Family family_of(const Records& records, const std::vector<PlanFile>& plans) {
  if (plans.empty()) throw InvalidInput("plans", "none", "the plan of each size");
  return detail::FamilySearch(records, plans).run();
}

}  // namespace scalewise::check
