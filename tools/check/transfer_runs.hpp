// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a sweep over learning rates or weight decays: which there are, and making those that
// are asked for. Library check_reference.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "check/cost.hpp"
#include "check/experiment.hpp"
#include "check/run_times.hpp"
#include "scalewise/check/sweep.hpp"
#include "scalewise/check/sweep_journal.hpp"
#include "train/data.hpp"

namespace scalewise::experiment {

/// Whether an option, without its dashes, says which table is judged and how it is read: no run depends on it.
inline bool is_of_table(const std::string& name) {
  return name == "judge" || name == "against" || name.ends_with("where") ||
         name.ends_with("-column");
}

/// Whether the weight decay is tuned instead of the rate; and the tuned value at octave 0.
inline bool tunes_decay(const Experiment& e) { return e.tuned == Tuned::weight_decay; }
inline double centre(const Experiment& e) {
  return tunes_decay(e) ? e.model.weight_decay : e.model.rate;
}

/// Makes the runs of a sweep, and keeps them in memory and in a journal if there is one.
class TransferRuns {
 public:
  /// Throws:   InvalidInput for a journal of other inputs, and for what makes no plan at some size.
  TransferRuns(const Experiment& e, const frame::Options& options, const std::string& journal);

  /// All that a run depends on besides size, the tuned value and seed; sizes and seeds can be added later.
  const files::Inputs& inputs() const { return inputs_; }

  const std::vector<check::RateRun>& finished() const { return journal_.runs(); }
  const RunTimes& times() const { return times_; }

  /// Keeps a run that somebody else has made.
  void add(const check::RateRun& run) { journal_.append(run); }

  /// The seeds of each size where the largest has so many.
  std::vector<check::SweepSize> seeds_of(long seeds) const;

  /// The sweep whose largest size has so many seeds.
  check::Sweep sweep(long seeds) const { return check::sweep(seeds_of(seeds), finished()); }

  /// The runs that such a sweep is expected to have.
  std::vector<check::SweepTask> usual(long seeds) const;

  /// The cost of such a sweep here, without the runs that are finished.
  Cost expected(long seeds) const;

  /// The longest first, so that no core waits long for the last one.
  std::vector<check::SweepTask> longest_first(std::vector<check::SweepTask> tasks) const;

  /// One thread per run. None begins that would end beyond `deadline`, in seconds since the start.
  void make(std::vector<check::SweepTask> tasks, double deadline = HUGE_VAL);

  /// Makes one run and keeps it nowhere.
  /// Returns:  no loss if the program was asked to stop.
  std::optional<double> loss(const check::SweepTask& task) const;

 private:
  bool make_one(const check::SweepTask& task);

  const Experiment& e_;
  train::Data data_;
  files::Inputs inputs_;
  std::map<long, double> costs_;  // the time of a run of each size, in any unit
  RunTimes times_;
  check::SweepJournal journal_;
};

}  // namespace scalewise::experiment
