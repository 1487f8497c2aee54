// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/check/records.hpp"
#include "scalewise/check/require_record.hpp"
#include "scalewise/plan/fingerprint.hpp"

namespace scalewise::check {

/// Takes sizes of activations, gradients and updates of one run from a training loop, step by step.
/// The activations of step k are those after k updates; step 0 is initialization. All steps have
/// to use the same batch, or changes mean nothing.
/// Shapes:   data is an array of any shape, `count` entries, float or double
/// Accuracy: moments are kept, not the data, except the activations of step 0 (as float), from
///           which changes are measured; record_moments() spares them.
class Recorder {
 public:
  explicit Recorder(Run run) : run_(run) {}
  /// Records a run of a model with a plan, whose fingerprint the records then have: no other plan can judge them.
  Recorder(Run run, const Plan& plan) : run_(run) {
    records_.set_plan(run, plan::plan_fingerprint(plan));
  }

  /// An activation: its size, and from the second step on how far it is from step 0. What has one name several
  /// times in a step, as where layers share a module, comes in the same order in each.
  template <class Scalar>
  void record(const std::string& name, const Scalar* data, std::size_t count, long step) {
    FirstValues& seen = activations_[name];
    if (step != seen.step) seen.calls = 0;
    seen.step = step;
    const std::size_t call = seen.calls++;
    if (step == 0) seen.first.emplace_back(data, data + count);
    if (step == 0 || call >= seen.first.size() || seen.first[call].size() != count) {
      return add(Signal::value, name, data, count, step);  // nothing to compare with
    }
    const std::vector<float>& first = seen.first[call];
    MomentsInPieces values;
    Moments change;
    std::array<float, 1024> piece;  // stays in the first cache, as does its part of the data
    for (std::size_t at = 0; at < count; at += piece.size()) {
      const std::size_t n = (std::min)(piece.size(), count - at);
      values.add(data + at, n);
      for (std::size_t i = 0; i < n; ++i) {
        piece[i] = static_cast<float>(data[at + i]) - first[at + i];
      }
      change.add(piece.data(), n);
    }
    Moments value;
    values.add_to(value);
    record_moments(Signal::value, name, value, step);
    record_moments(Signal::change, name, change, step);
  }

  /// A parameter, by its name in the plan, after `step` updates; only step 0 is judged.
  template <class Scalar>
  void record_parameter(const std::string& name, const Scalar* data, std::size_t count, long step) {
    add(Signal::parameter, name, data, count, step);
  }

  /// The gradient of a parameter, by its name in the plan, after `step` updates.
  template <class Scalar>
  void record_gradient(const std::string& name, const Scalar* data, std::size_t count, long step) {
    add(Signal::gradient, name, data, count, step);
  }

  /// The update that step number `step`, counted from 1, has added to a parameter.
  template <class Scalar>
  void record_update(const std::string& name, const Scalar* data, std::size_t count, long step) {
    add(Signal::update, name, data, count, step);
  }

  /// Sums that device code, or one rank of several, has computed itself.
  /// Throws:   InvalidInput where no numbers have these sums.
  void record_moments(Signal signal, const std::string& name, const Moments& moments, long step) {
    detail::require_possible_sums("record_moments()", {signal, name}, moments);
    records_.add({signal, name}, step, run_, moments);
  }

  const Run& run() const { return run_; }
  const Records& records() const { return records_; }

 private:
  template <class Scalar>
  void add(Signal signal, const std::string& name, const Scalar* data, std::size_t count,
           long step) {
    Moments moments;
    moments.add(data, count);
    record_moments(signal, name, moments, step);
  }

  struct FirstValues {
    std::vector<std::vector<float>> first;  // of step 0, one for each time that it was recorded
    long step = 0;
    std::size_t calls = 0;  // in this step
  };

  Run run_;
  Records records_;
  std::map<std::string, FirstValues> activations_;
};

}  // namespace scalewise::check
