// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Options of training that several programs have.
#pragma once

#include "frame/options.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/rule_id.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

inline frame::Option& add_start_option(frame::Options& o, Settings& s) {
  return o.add("--start", s.start).names(rule_id);
}

inline void add_schedule_options(frame::Options& o, Settings& s) {
  o.add("--warmup", s.warmup, "-1: a twentieth of --steps").from(-1);
  o.add("--schedule", s.schedule).words(schedule_words);
  o.add("--min-rate", s.min_rate).from(0).to(1);
}

inline void add_decay_options(frame::Options& o, Settings& s) {
  o.add("--weight-decay", s.weight_decay).from(0).below(1e30);
  o.add("--decay", s.decay).words(decay_words);
}

}  // namespace scalewise::train
