// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The frame of programs that report on a family of Networks: library check_reference.
#pragma once

#include <functional>
#include <memory>

#include "check/experiment.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"
#include "lab/programs/check/for_each_run.hpp"

namespace scalewise::experiment {

/// Adds the checks of an experiment. Its models train at a constant rate, unless an option says otherwise.
void add_checks(frame::Program& program, const std::shared_ptr<Experiment>& e);

/// Adds them and the report that `run` makes, as make_report() does.
void experiment_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        const std::function<Report()>& run);

}  // namespace scalewise::experiment
