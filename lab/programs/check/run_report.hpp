// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Programs whose report is of independent runs, one of each size and seed: they make the runs
// themselves, or any engine makes them as tasks.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check/report.hpp"
#include "check/run_task.hpp"
#include "check/tasks.hpp"
#include "frame/progress.hpp"
#include "lab/programs/check/for_each_run.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/numeric/parallel.hpp"

namespace scalewise::experiment {

/// Where a program keeps its sizes and its number of seeds, once its options are read.
struct RunsOf {
  std::shared_ptr<const std::vector<long>> sizes;
  std::shared_ptr<const long> seeds;
  std::function<std::string()> axis;  // what sizes are; ids begin with its first letter
};

/// How much a run adds to the progress.
struct Work {
  long units = 1;
  double cost = 0;  // of all of them, where runs differ; else 0
};

/// The functions of a program that makes and reports on runs.
template <class Run>
struct RunReport {
  using Json = nlohmann::ordered_json;

  /// Makes one, and adds its work to the progress.
  std::function<Run(long size, long seed, frame::Progress&)> make;

  /// To the members of its file, and back. Numbers that are not finite are null there, and no numbers
  /// afterwards: report() treats all of these alike.
  std::function<Json(const Run&)> write;
  std::function<Run(const io::JsonReader&)> read;

  /// Of the runs by size, one per seed.
  std::function<Report(const std::map<long, std::vector<Run>>&)> report;

  std::string unit = "networks";  // of work
  std::function<Work(long size)> work = {};

  /// Runs that a program makes at the same time, each on one thread, where a run alone would leave
  /// threads idle. Such a program reports on all runs or on none.
  long at_once = 1;

  /// Refuses what no run can be made of, before there are tasks; may be missing.
  std::function<void()> require = {};
};

/// A number of a run's file; none for null.
inline double number_or_nan(const io::JsonReader& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.number();
}

inline std::vector<double> numbers_or_nan(const io::JsonReader& list) {
  std::vector<double> numbers;
  for (const io::JsonReader& value : list.items()) numbers.push_back(number_or_nan(value));
  return numbers;
}

namespace detail {

/// Results by size and seed.
template <class Run>
using Results = std::map<std::pair<long, long>, Run>;

/// The runs that are not among the results, the largest first.
template <class Run>
std::vector<RunTask> missing_runs(const RunsOf& of, const Results<Run>& results) {
  std::vector<RunTask> missing;
  for (auto size = of.sizes->rbegin(); size != of.sizes->rend(); ++size) {
    for (long seed = 1; seed <= *of.seeds; ++seed) {
      if (!results.contains({*size, seed})) missing.push_back({*size, seed});
    }
  }
  return missing;
}

/// Makes runs at the same time, and adds them to the results.
/// Throws:   frame::Interrupted when it was asked to stop.
template <class Run>
void make_together(const RunReport<Run>& runs, const std::vector<RunTask>& tasks,
                   frame::Progress& progress, Results<Run>& results) {
  const auto all = static_cast<long>(tasks.size());
  for (long begin = 0; begin < all; begin += runs.at_once) {
    if (frame::stop_requested() != 0) throw frame::Interrupted{};
    std::vector<std::optional<Run>> made(
        static_cast<std::size_t>(std::min(runs.at_once, all - begin)));
    const auto first = tasks.begin() + begin;
    numeric::parallel_for(static_cast<std::ptrdiff_t>(made.size()), [&](std::ptrdiff_t i) {
      made[static_cast<std::size_t>(i)] = runs.make(first[i].size, first[i].seed, progress);
    });
    for (std::size_t i = 0; i < made.size(); ++i) {
      const RunTask& task = first[static_cast<std::ptrdiff_t>(i)];
      results.emplace(std::pair(task.size, task.seed), std::move(*made[i]));
    }
  }
}

/// Makes what is not among the results, and reports on all.
template <class Run>
Report report_on(const RunsOf& of, const RunReport<Run>& runs, Results<Run> results) {
  const long all = *of.seeds * static_cast<long>(of.sizes->size());
  std::map<long, std::vector<Run>> by_size;
  long finished = 0;
  {
    const std::vector<RunTask> missing = missing_runs(of, results);
    Work work{0};
    for (const RunTask& task : missing) {
      const Work one = runs.work(task.size);
      work.units += one.units;
      work.cost += one.cost;
    }
    frame::Progress progress(runs.unit, work.units, work.cost);
    if (runs.at_once > 1) make_together(runs, missing, progress, results);
    finished = for_each_run(*of.sizes, *of.seeds, [&](long size, long seed) {
      const auto found = results.find({size, seed});
      by_size[size].push_back(found != results.end() ? std::move(found->second)
                                                     : runs.make(size, seed, progress));
    });
  }
  Report report = runs.report(by_size);
  if (finished < all) stopped_early(report, finished, all);
  return report;
}

/// Makes the run of --run-one, or reads the results.
/// Returns:  an exit code, or none if all results are there and --collect asks for the report.
template <class Run>
std::optional<int> run_tasks(const RunsOf& of, const RunReport<Run>& runs, const TaskOptions& asked,
                             const TaskFolder& folder, const frame::Options& options,
                             Results<Run>& results) {
  if (!asked.one.empty()) {
    const RunTask task = run_task_named(folder.run_of(asked.one));
    return folder.make(asked.one, [&] {
      const Work work = runs.work(task.size);
      frame::Progress progress(runs.unit, work.units, work.cost);
      nlohmann::ordered_json result{{"size", task.size}, {"seed", task.seed}};
      result.update(runs.write(runs.make(task.size, task.seed, progress)));
      return result;
    });
  }
  if (runs.require) runs.require();
  const std::map<std::string, nlohmann::ordered_json> files = folder.results();
  for (const RunTask& task : missing_runs(of, results)) {
    const auto file = files.find(task_name(of.axis(), task));
    if (file == files.end()) continue;
    results.emplace(std::pair(task.size, task.seed),
                    runs.read(io::JsonReader(file->second, file->first)));
  }
  const std::vector<RunTask> missing = missing_runs(of, results);
  if (asked.collect && missing.empty()) return {};
  print_tasks(of.axis(), folder, missing, options);
  return asked.collect ? tasks_missing : 0;
}

}  // namespace detail

/// Adds to a program that has the options --sizes and --seeds the report on its runs, and its runs as
/// tasks.
template <class Run>
void make_report(frame::Program& program, const RunsOf& of, const RunReport<Run>& runs) {
  const auto tasks = std::make_shared<TaskOptions>();
  const auto results = std::make_shared<detail::Results<Run>>();
  frame::Options& o = *program.options;
  o.at("--sizes").of_runs();
  o.at("--seeds").of_runs();
  const auto all_runs = [=] { return detail::report_on(of, runs, std::move(*results)); };
  const auto as_tasks = [=, name = program.name,
                         options = program.options]() -> std::optional<int> {
    if (!tasks->asked()) return {};
    const TaskFolder folder(tasks->results, name, options->inputs());
    return detail::run_tasks(of, runs, *tasks, folder, *options, *results);
  };
  make_report(program, all_runs, as_tasks);
  add_task_options(o, *tasks);
  program.check = [tasks, &o, also = program.check] {
    experiment::check(*tasks, o, {});
    if (also) also();
  };
}

}  // namespace scalewise::experiment
