// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a program as tasks, which any engine can make: --emit-tasks prints a command line for
// each run that is missing, --run-one makes one of them, --collect reads their results. The folder of
// results is all that they share.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "frame/options.hpp"
#include "scalewise/files/inputs.hpp"

namespace scalewise::experiment {

/// The exit code of --collect where runs are missing.
inline constexpr int tasks_missing = 4;

/// The options of tasks on the command line.
struct TaskOptions {
  bool emit = false;
  std::string one;  // an id
  bool collect = false;
  std::string results;

  bool asked() const { return !results.empty(); }
};

/// A name that no other process chooses, on any machine.
std::string own_name();

/// Adds the three verbs and --results.
void add_task_options(frame::Options& options, TaskOptions& tasks);

/// Says nothing once more in a task; `others` are options that are not for tasks.
/// Throws:   InvalidInput for two verbs, a verb without --results, --results without a verb, and for one of
///           the others next to them.
void check(const TaskOptions& tasks, const frame::Options& options,
           std::initializer_list<const char*> others);

/// The threads to use: one for --run-one without --threads, since engines spread tasks over the cores.
int threads_of(int threads, const frame::Options& options);

/// A word as a POSIX shell reads it: in single quotes where that is needed.
std::string shell_quoted(const std::string& word);

/// The results of tasks in a folder: a file ID.json each, with a checksum. Any number of processes on
/// any number of machines may write them at the same time, also two the same one: there is no lock,
/// and a file appears whole or not at all.
class TaskFolder {
 public:
  using Json = nlohmann::ordered_json;

  /// `inputs` are all that a run depends on besides its name.
  TaskFolder(std::string folder, std::string program, files::Inputs inputs);

  /// The id of a run: its name, such as w64-o-1.5-s3, and the fingerprint of program, inputs and name.
  std::string id(const std::string& run) const;

  /// The name in an id.
  /// Throws:   InvalidInput for what is not an id of this program and these inputs.
  std::string run_of(const std::string& id) const;

  /// The results by the name of the run. Damaged files are left out, so that their runs are missing,
  /// and named on stderr; so are results of several kinds of machines.
  /// Throws:   InvalidInput for a result of another program, another version or other inputs.
  std::map<std::string, Json> results() const;

  /// Writes the result of a run, on disk when this returns.
  /// Throws:   InvalidInput when it cannot be written.
  void write(const std::string& id, const Json& result) const;

  /// Makes a run, unless its result exists, writes the result, and prints it, without its lists, as a
  /// line of JSON.
  /// `make` returns no result when it was asked to stop.
  /// Returns:  the exit code.
  int make(const std::string& id, const std::function<std::optional<Json>()>& make) const;

  /// Prints the command lines of runs.
  /// Throws:   InvalidInput for an option with a line break, since a line is a task.
  void print(const std::vector<std::string>& runs, const frame::Options& options) const;

 private:
  std::string path_of(const std::string& id) const;
  /// None for a damaged file.
  std::optional<Json> read(const std::string& id) const;

  std::string folder_;
  std::string program_;
  files::Inputs inputs_;
};

}  // namespace scalewise::experiment
