// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The main function that programs on Network share.
#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <iostream>
#include <new>
#include <string>

#include "check/experiment.hpp"
#include "check/network.hpp"
#include "check/report.hpp"

namespace scalewise::experiment {

/// Reads the options, runs, and publishes. Returns: the exit code: that of the verdict, 2 for input
/// that makes no sense.
/// `defaults` are those of the options, `more` adds options of the program's own.
inline int run_program(int argc, char** argv, const std::string& name, const std::string& about,
                       Experiment defaults, const std::function<void(CLI::App&)>& more,
                       const std::function<Report(const Experiment&)>& run) {
  defaults.model.warmup = 0;
  defaults.model.schedule = "constant";
  CLI::App app{about, name};
  add_options(app, defaults);
  more(app);
  try {
    app.parse(argc, argv);
    check(defaults);
    use_threads(defaults.model.threads);
    make_folder(defaults);  // before anything takes long
    return publish(run(defaults), defaults);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::bad_alloc&) {
    std::cerr << name << ": not enough memory for these models\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return 2;
  }
}

}  // namespace scalewise::experiment
