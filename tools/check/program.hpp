// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The frame of programs that report on a family of Networks: library check_reference.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "check/experiment.hpp"
#include "check/for_each_run.hpp"
#include "check/report.hpp"
#include "frame/progress.hpp"

namespace scalewise::experiment {

/// Adds the checks of an experiment and the report that `run` makes of it, as make_report() does. What
/// models train with is a constant rate.
void experiment_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        const std::function<Report()>& run,
                        const std::function<std::optional<int>()>& before = {});

}  // namespace scalewise::experiment
