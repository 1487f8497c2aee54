// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/program.hpp"

namespace scalewise::experiment {

void experiment_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        const std::function<Report()>& run,
                        const std::function<std::optional<int>()>& before) {
  e->model.warmup = 0;
  e->model.schedule = "constant";
  program.check = [e, also = program.check] {
    check(*e);
    if (e->base == 0) e->base = e->sizes.front();
    if (also) also();
  };
  make_report(program, run, before);
}

}  // namespace scalewise::experiment
