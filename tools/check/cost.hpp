// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The expected cost of runs on this machine: for --dry-run, and to compare with the actual cost. Library
// check_reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/after_step.hpp"
#include "scalewise/plan/plan.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Runs of one size that are to be made.
struct RunsOfSize {
  long size;
  long count;
  long steps;
  double operations;  // of a step
};

struct Cost {
  long runs = 0;
  double operations = 0;
  double mebibytes = 0;
  double seconds = 0;
};

/// The entries of all matrices that every token is multiplied by.
double product_weights(const Plan& plan);

/// Floating-point operations of the products of a training step; a forward pass has a third of them.
/// Equation: 6 per token and weight of a hidden or output matrix, and 12 seq head_dim per token, head and layer:
///           2 forward and 4 backward
double operations_of_step(const train::Settings& s, const Plan& plan);

/// Times the first steps of a run of each size, as many at once as there are threads and runs; train(size, after_step)
/// makes one.
/// Equation: seconds = Σ count · seconds of a run / how many at once; of a run: all but the steps that were left out, and for
///           each of these the mean of those after the third
/// Units:    memory: the most that this process held meanwhile
/// Accuracy: 30 % on a machine that does nothing else (lab/timing/README.md)
Cost cost_of(const std::vector<RunsOfSize>& sizes,
             const std::function<void(long size, const AfterStep& after_step)>& train);

/// A part of a run that is made a number of times.
struct Repeated {
  long count;
  double operations;  // of one
  std::function<void()> once;
};

/// Runs of one size, made one after the other, each on all threads.
struct RunsInTurn {
  long count;
  std::function<std::vector<Repeated>()> begin;  // begins one
};

/// Times how a run of each size begins and, a few times, what it repeats.
/// Equation: seconds = Σ runs (beginning + Σ count · seconds of one)
/// Units:    memory: the most that this process held meanwhile
/// Accuracy: 30 % on a machine that does nothing else
Cost cost_of(const std::vector<RunsInTurn>& sizes);

/// One line, such as "152 runs, 3.1e+12 operations, 40 MiB, 14 s on 2 threads".
std::string cost_text(const Cost& cost);

}  // namespace scalewise::experiment
