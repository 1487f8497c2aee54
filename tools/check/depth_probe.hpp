// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Moments of the stream of untrained models, layer by layer: library check_reference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "check/sequence_pairs.hpp"
#include "scalewise/check/profile.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/propagation/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// A model that is not made yet: its plan, and what the fixed batch is like.
struct Subject {
  Plan plan;
  propagation::Data data;
  std::vector<SequencePairs> sequences;
  long tokens = 0;  // per sequence
};

/// Throws:   InvalidInput for what no rule, shape or data allow.
Subject subject_of(const train::Settings& settings);

/// Measurements of models of several seeds on the fixed batch. Gradients are those of the sum of losses:
/// of all tokens, or of all images over their number.
struct Measured {
  check::MeasuredProfile forward;
  check::MeasuredProfile backward;
};

/// "embedding", or "layer.l.mlp.stream" after layer l - 1 = 0 …
std::string stream_place(long layer);

/// Seeds 1 … seeds; `done(loss)` is called after each and returns false to stop there.
Measured measure_depth(train::Settings settings, long seeds,
                       const std::function<bool(double)>& done);

}  // namespace scalewise::experiment
