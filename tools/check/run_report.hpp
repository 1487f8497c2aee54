// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Programs whose report is of independent runs, one of each size and seed: they make the runs
// themselves, or any engine makes them as tasks.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/experiment.hpp"
#include "check/network_plan.hpp"
#include "check/program.hpp"
#include "check/run_task.hpp"
#include "frame/progress.hpp"
#include "frame/tasks.hpp"
#include "scalewise/io/json_reader.hpp"
#include "train/data.hpp"

namespace scalewise::experiment {

/// The functions of a program that makes and reports on runs.
template <class Run>
struct RunReport {
  using Json = nlohmann::ordered_json;

  /// Makes one; the progress is in steps.
  std::function<Run(const train::Settings&, frame::Progress&)> make;

  /// To the members of its file, and back. Numbers that are not finite are null there, and no numbers
  /// afterwards: report() treats all of these alike.
  std::function<Json(const Run&)> write;
  std::function<Run(const JsonReader&)> read;

  /// Of the runs by size, one per seed.
  std::function<Report(const std::map<long, std::vector<Run>>&)> report;
};

/// A number of a run's file; none for null.
inline double number_or_nan(const JsonReader& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

inline std::vector<double> numbers_or_nan(const JsonReader& list) {
  std::vector<double> numbers;
  for (const JsonReader& value : list.items()) numbers.push_back(number_or_nan(value));
  return numbers;
}

namespace detail {

/// Results by size and seed.
template <class Run>
using Results = std::map<std::pair<long, long>, Run>;

/// Makes what is not among the results, and reports on all.
template <class Run>
Report report_on(const Experiment& e, const RunReport<Run>& runs, const Results<Run>& results) {
  const long all = e.seeds * static_cast<long>(e.sizes.size());
  std::map<long, std::vector<Run>> by_size;
  long finished = 0;
  {
    const long missing = all - static_cast<long>(results.size());
    frame::Progress progress("steps", missing * e.model.steps);
    finished = for_each_run(e.sizes, e.seeds, [&](long size, long seed) {
      const auto found = results.find({size, seed});
      by_size[size].push_back(
          found != results.end() ? found->second : runs.make(settings_at(e, size, seed), progress));
    });
  }
  Report report = runs.report(by_size);
  if (finished < all) stopped_early(report, finished, all);
  return report;
}

/// Makes every plan, so that no task is refused later.
inline void require_plans(const Experiment& e) {
  const train::Data data = train::read_data(e.model);
  for (const long size : e.sizes) static_cast<void>(network_plan(settings_at(e, size, 1), data));
}

/// Makes the run of --run-one, or reads the results.
/// Returns:  an exit code, or none if all results are there and --collect asks for the report.
template <class Run>
std::optional<int> run_tasks(const Experiment& e, const RunReport<Run>& runs,
                             const frame::TaskOptions& asked, const frame::TaskFolder& folder,
                             const frame::Options& options, Results<Run>& results) {
  if (!asked.one.empty()) {
    const RunTask task = run_task_named(folder.run_of(asked.one));
    return folder.make(asked.one, [&] {
      frame::Progress progress("steps", e.model.steps);
      nlohmann::ordered_json result{{"size", task.size}, {"seed", task.seed}};
      result.update(runs.write(runs.make(settings_at(e, task.size, task.seed), progress)));
      return result;
    });
  }
  require_plans(e);
  const std::map<std::string, nlohmann::ordered_json> files = folder.results();
  std::vector<RunTask> missing;
  for (auto size = e.sizes.rbegin(); size != e.sizes.rend(); ++size) {  // the largest first
    for (long seed = 1; seed <= e.seeds; ++seed) {
      const auto file = files.find(task_name(e, {*size, seed}));
      if (file == files.end()) {
        missing.push_back({*size, seed});
      } else {
        const nlohmann::json json = file->second;
        results.emplace(std::pair(*size, seed), runs.read(JsonReader(json, file->first)));
      }
    }
  }
  if (asked.collect && missing.empty()) return {};
  print_tasks(e, folder, missing, options);
  return asked.collect ? frame::tasks_missing : 0;
}

}  // namespace detail

/// Adds the checks of an experiment, its report, and its runs as tasks.
template <class Run>
void run_report_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        const RunReport<Run>& runs) {
  const auto tasks = std::make_shared<frame::TaskOptions>();
  const auto results = std::make_shared<detail::Results<Run>>();
  frame::Options& o = *program.options;
  o.at("--sizes").of_runs();
  o.at("--seeds").of_runs();
  const auto all_runs = [=] { return detail::report_on(*e, runs, *results); };
  const auto as_tasks = [=, name = program.name,
                         options = program.options]() -> std::optional<int> {
    if (!tasks->asked()) return {};
    const frame::TaskFolder folder(tasks->results, name, options->inputs());
    return detail::run_tasks(*e, runs, *tasks, folder, *options, *results);
  };
  experiment_program(program, e, all_runs, as_tasks);
  frame::add_task_options(o, *tasks);
  program.check = [tasks, &o, also = program.check] {
    frame::check(*tasks, o, {});
    also();
  };
}

}  // namespace scalewise::experiment
