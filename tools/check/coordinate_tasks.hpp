// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a coordinate check as tasks that any engine can make.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/coordinate_runs.hpp"
#include "check/experiment.hpp"
#include "frame/tasks.hpp"
#include "scalewise/check/record_json.hpp"
#include "scalewise/io/json_reader.hpp"

namespace scalewise::experiment {

/// Of a run, such as w64-s3: size along the axis and seed.
inline std::string task_name(const Experiment& e, const CoordinateTask& task) {
  return e.axis.substr(0, 1) + std::to_string(task.size) + "-s" + std::to_string(task.seed);
}

/// The other way round.
/// Requires: a name that task_name() has made.
inline CoordinateTask coordinate_task_named(const std::string& name) {
  return {std::stol(name.substr(1)), std::stol(name.substr(name.rfind("-s") + 2))};
}

/// The contents of a run's file.
inline nlohmann::ordered_json result_json(const CoordinateTask& task,
                                          const check::Records& records) {
  return {{"size", task.size},
          {"seed", task.seed},
          {"records", check::records_json(records).begin()->second}};
}

/// Gives runs the results that a folder has.
inline void add_results(const frame::TaskFolder& folder, CoordinateRuns& runs) {
  for (const auto& [name, result] : folder.results()) {
    const CoordinateTask task = coordinate_task_named(name);
    const nlohmann::json json = result;
    runs.add(task, check::records_of(JsonReader(json, name).at("records"), runs.run_of(task)));
  }
}

/// Prints the command lines of runs.
inline void print_tasks(const Experiment& e, const frame::TaskFolder& folder,
                        const std::vector<CoordinateTask>& tasks, const frame::Options& options) {
  std::vector<std::string> names;
  for (const CoordinateTask& task : tasks) names.push_back(task_name(e, task));
  folder.print(names, options);
}

}  // namespace scalewise::experiment
