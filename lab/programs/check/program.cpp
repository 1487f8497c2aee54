// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "lab/programs/check/program.hpp"

namespace scalewise::experiment {

void add_checks(frame::Program& program, const std::shared_ptr<Experiment>& e) {
  e->model.warmup = 0;
  e->model.schedule = nn::Decline::constant;
  program.check = [e, also = program.check] {
    check(*e);
    if (e->base == 0) e->base = e->sizes.front();
    if (also) also();
  };
}

void experiment_program(frame::Program& program, const std::shared_ptr<Experiment>& e,
                        const std::function<Report()>& run) {
  add_checks(program, e);
  make_report(program, run);
}

}  // namespace scalewise::experiment
