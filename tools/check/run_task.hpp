// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// A run of one size and seed as a task that any engine can make.
#pragma once

#include <string>
#include <vector>

#include "check/tasks.hpp"

namespace scalewise::experiment {

/// A run that can be made.
struct RunTask {
  long size;
  long seed;  // from 1
};

/// Of a run, such as w64-s3: size along the axis and seed.
inline std::string task_name(const std::string& axis, const RunTask& task) {
  return axis.substr(0, 1) + std::to_string(task.size) + "-s" + std::to_string(task.seed);
}

/// The other way round.
/// Requires: a name that task_name() has made.
inline RunTask run_task_named(const std::string& name) {
  return {std::stol(name.substr(1)), std::stol(name.substr(name.rfind("-s") + 2))};
}

/// Prints the command lines of runs.
inline void print_tasks(const std::string& axis, const TaskFolder& folder,
                        const std::vector<RunTask>& tasks, const frame::Options& options) {
  std::vector<std::string> names;
  for (const RunTask& task : tasks) names.push_back(task_name(axis, task));
  folder.print(names, options);
}

}  // namespace scalewise::experiment
