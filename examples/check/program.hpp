// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The main function that programs on Network share: library check_reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/experiment.hpp"
#include "check/report.hpp"

namespace scalewise::experiment {

/// A whole number that one program has as an option beside those of add_options().
struct OwnOption {
  std::string name;
  long* value;
  std::string help;
};

/// Reads the options, runs, and publishes. `defaults` are those of the options.
/// Returns:  the exit code: that of the verdict, 2 for input that makes no sense.
int run_program(int argc, char** argv, const std::string& name, const std::string& about,
                Experiment defaults, const std::vector<OwnOption>& own,
                const std::function<Report(const Experiment&)>& run);

}  // namespace scalewise::experiment
