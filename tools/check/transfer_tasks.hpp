// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a sweep as tasks that any engine can make.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "check/experiment.hpp"
#include "check/tasks.hpp"
#include "check/transfer_runs.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/io/json_reader.hpp"
#include "scalewise/numeric/exact_text.hpp"

namespace scalewise::experiment {

/// Of a run, such as w64-o-1.5-s3: size along the axis, octave and seed.
inline std::string task_name(const Experiment& e, const check::SweepTask& task) {
  return axis_name(e).substr(0, 1) + std::to_string(task.size) + "-o" +
         numeric::exact_text(task.octave) + "-s" + std::to_string(task.seed);
}

/// The other way round.
/// Requires: a name that task_name() has made.
inline check::SweepTask task_named(const std::string& name) {
  const std::size_t octave = name.find("-o");
  const std::size_t seed = name.rfind("-s");
  check::SweepTask task;
  task.size = std::stol(name.substr(1, octave - 1));
  std::from_chars(name.data() + octave + 2, name.data() + seed, task.octave);
  task.seed = std::stol(name.substr(seed + 2));
  return task;
}

/// The result of a run, as it is printed and kept in its file; a loss of null: diverged.
inline nlohmann::ordered_json result_json(const Experiment& e, const check::RateRun& run) {
  const bool finite = std::isfinite(run.loss);
  return {{"size", run.size},
          {"octave", run.octave},
          {tunes_decay(e) ? "weight_decay" : "rate", run.rate(centre(e))},
          {"seed", run.seed},
          {"loss", finite ? nlohmann::ordered_json(run.loss) : nlohmann::ordered_json()}};
}

inline check::RateRun run_of_result(const std::string& name, const nlohmann::ordered_json& result) {
  const check::SweepTask task = task_named(name);
  const io::JsonReader loss = io::JsonReader(result, name).at("loss");
  const double diverged = std::numeric_limits<double>::infinity();
  return {task.size, task.octave, task.seed, loss.is_null() ? diverged : loss.number()};
}

}  // namespace scalewise::experiment
