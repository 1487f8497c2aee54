// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Options of training that several programs have.
#pragma once

#include "frame/options.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

void add_model_options(frame::Options& o, Settings& s);
void add_optimizer_option(frame::Options& o, Settings& s);
void add_schedule_options(frame::Options& o, Settings& s);
void add_decay_options(frame::Options& o, Settings& s);

}  // namespace scalewise::train
