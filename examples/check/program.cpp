// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/program.hpp"

#include <exception>
#include <iostream>
#include <new>

#include "train/threads.hpp"

namespace scalewise::experiment {

namespace {

std::vector<std::pair<std::string, Setting>> settings_of(const Experiment& e) {
  return {{"rule", e.model.rule}, {"set", e.model.set},     {"optimizer", e.model.optimizer},
          {"rate", e.model.rate}, {"axis", e.axis},         {"sizes", e.sizes},
          {"seeds", e.seeds},     {"steps", e.model.steps}, {"batch", e.model.batch},
          {"seq", e.model.seq}};
}

}  // namespace

int run_program(int argc, char** argv, const std::string& name, const std::string& about,
                Experiment defaults, const std::vector<OwnOption>& own,
                const std::function<Report(const Experiment&)>& run) {
  defaults.model.warmup = 0;
  defaults.model.schedule = "constant";
  CLI::App app{about, name};
  try {
    add_options(app, defaults);
    for (const OwnOption& option : own) {
      app.add_option(option.name, *option.value, option.help)->capture_default_str()->take_last();
    }
    app.parse(argc, argv);
    check(defaults);
    train::use_threads(defaults.model.threads);
    make_folder(defaults.out);  // before anything takes long
    Report report = run(defaults);
    report.settings = settings_of(defaults);
    return publish(report, defaults.format, defaults.out);
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
