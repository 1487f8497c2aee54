// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The runs of a coordinate check: which there are, and training those that are asked for.
// Library check_reference.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "check/cost.hpp"
#include "check/experiment.hpp"
#include "check/run_task.hpp"
#include "scalewise/check/fault.hpp"
#include "scalewise/check/record_file.hpp"
#include "train/data.hpp"

namespace scalewise::experiment {

/// Trains models of a family and keeps what was recorded, in memory and in a file if there is one.
class CoordinateRuns {
 public:
  /// `family` is what is trained; `fault`, if any, is one of the backward pass.
  /// Throws:   InvalidInput for a file of other inputs.
  CoordinateRuns(const Experiment& e, const train::Data& data,
                 const std::vector<check::Member>& family, const std::optional<check::Fault>& fault,
                 const std::string& file, files::Inputs inputs);

  /// Trains seeds[i] seeds of size i, the largest size first, whole runs on each core or, where one would
  /// keep the others waiting, on all; finished runs are not repeated. Ends early when the program is asked
  /// to stop.
  /// Returns:  whether all runs are finished.
  bool train(const std::vector<long>& seeds);

  /// The cost of that here.
  Cost expected(const std::vector<long>& seeds) const;

  /// The missing runs, the largest first.
  std::vector<RunTask> missing(const std::vector<long>& seeds) const;
  /// Makes one run, and keeps it nowhere.
  check::Records make(const RunTask& task) const;
  /// Keeps what was recorded of a run.
  void add(const RunTask& task, const check::Records& records);

  check::Run run_of(const RunTask& task) const;

  /// The records of seeds[i] seeds of size i.
  check::Records records(const std::vector<long>& seeds) const;
  /// How many of these runs are finished.
  std::size_t count(const std::vector<long>& seeds) const;
  /// The members of `of` of which there are runs.
  std::vector<check::Member> present(const std::vector<check::Member>& of) const;

 private:
  const check::Member& member(long size) const;

  const Experiment& e_;
  const train::Data& data_;
  const std::vector<check::Member>& family_;
  std::optional<check::Fault> fault_;
  std::string file_;
  files::Inputs inputs_;
  check::RecordFile all_;
};

}  // namespace scalewise::experiment
