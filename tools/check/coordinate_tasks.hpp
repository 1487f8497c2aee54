// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a coordinate check as tasks that any engine can make.
#pragma once

#include <nlohmann/json.hpp>

#include "check/coordinate_runs.hpp"
#include "check/run_task.hpp"
#include "check/tasks.hpp"
#include "scalewise/check/record_json.hpp"
#include "scalewise/io/json_reader.hpp"

namespace scalewise::experiment {

/// The contents of a run's file.
inline nlohmann::ordered_json result_json(const RunTask& task, const check::Records& records) {
  return {{"size", task.size},
          {"seed", task.seed},
          {"records", check::records_json(records).begin()->second}};
}

/// Gives runs the results that a folder has.
inline void add_results(const TaskFolder& folder, CoordinateRuns& runs) {
  for (const auto& [name, result] : folder.results()) {
    const RunTask task = run_task_named(name);
    runs.add(task,
             check::records_of(io::JsonReader(result, name).at("records"), runs.run_of(task)));
  }
}

}  // namespace scalewise::experiment
