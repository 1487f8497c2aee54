// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Programs that report on trained models, one of each size and seed.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "check/cost.hpp"
#include "check/experiment.hpp"
#include "check/network_plan.hpp"
#include "lab/programs/check/program.hpp"
#include "lab/programs/check/run_report.hpp"
#include "train/data.hpp"

namespace scalewise::experiment {

/// Makes every plan, so that no task is refused later.
inline void require_plans(const Experiment& e) {
  const train::Data data = train::read_data(e.model);
  for (const long size : e.sizes) static_cast<void>(network_plan(settings_at(e, size, 1), data));
}

/// Begins a run, and says what it then does.
using Begin = std::function<std::vector<Repeated>(const train::Settings&)>;

/// Adds the checks of an experiment, its report, its runs as tasks, and what they will cost. Progress is
/// in steps of training.
template <class Run>
void experiment_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        RunReport<Run> runs, const Begin& begin) {
  runs.unit = "steps";
  runs.work = [e](long) { return Work{e->model.steps}; };
  runs.require = [e] { require_plans(*e); };
  add_checks(program, e);
  program.expected = [e, begin] {
    std::vector<RunsInTurn> sizes;
    for (const long size : e->sizes) {
      sizes.push_back({e->seeds, [&, size] { return begin(settings_at(*e, size, 1)); }});
    }
    return cost_text(cost_of(sizes));
  };
  const RunsOf of{{e, &e->sizes}, {e, &e->seeds}, [e] { return axis_name(*e); }};
  make_report(program, of, runs);
}

}  // namespace scalewise::experiment
