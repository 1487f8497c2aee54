// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Records that are judged by the plans of their models, whatever these models are.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "check/experiment.hpp"
#include "frame/options.hpp"
#include "scalewise/check/family.hpp"
#include "scalewise/check/record_file.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::experiment {

/// The records of all files.
/// Throws:   InvalidInput where there are none.
inline check::RecordFile records_of(const std::vector<std::string>& paths) {
  check::RecordFile file = check::read_records(paths);
  if (file.records.empty()) {
    throw InvalidInput(fmt::format("{}", fmt::join(paths, ", ")), "(no records)",
                       "records of some runs", file.damage);
  }
  if (!file.damage.empty()) std::cerr << file.damage << '\n';
  return file;
}

/// The family of --plans; what they are about takes the place of the options.
inline std::vector<check::Member> family_of_plans(const std::vector<std::string>& paths,
                                                  const check::Records& records, Experiment& e) {
  std::vector<check::PlanFile> files;
  for (const std::string& path : paths) files.push_back(check::read_plan_file(path));
  check::Family family = check::family_of(records, files);
  for (const std::string& name : family.unused) {
    std::cerr << "coordinate_check: " << messages::printable(name) << ": no records of its size\n";
  }
  const Plan& plan = family.members.front().plan;
  e.model.rule = plan.rule;
  e.model.optimizer = plan.optimizer;
  e.plans_axis = family.axis == "d_model" ? "width" : family.axis;
  e.sizes.clear();
  for (const check::Member& member : family.members) e.sizes.push_back(member.size);
  return std::move(family.members);
}

/// Plans say what the models are.
/// Throws:   InvalidInput for an option that says it as well, and for plans without records.
inline void check_plans(const frame::Options& o) {
  if (!o.given("--plans")) return;
  if (!o.given("--judge")) {
    throw InvalidInput("--plans", "(given)", "it with --judge, the records of these models");
  }
  for (const char* other :
       {"--rule", "--optimizer", "--set", "--axis", "--sizes", "--base", "--width", "--depth",
        "--head-dim", "--heads", "--activation", "--rotary", "--seq"}) {
    if (!o.given(other)) continue;
    throw InvalidInput(other, "(given)", "none with --plans", "the plans say what the models are");
  }
}

}  // namespace scalewise::experiment
