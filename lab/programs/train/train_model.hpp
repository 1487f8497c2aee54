// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The interface of the training loop, which takes long to compile.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <vector>

#include "scalewise/plan/plan.hpp"
#include "train/batches.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// The entries of a tensor, as they are stored.
struct TensorSize {
  std::string name;
  double rms = 0;
  double mean_absolute = 0;
};

/// Where a run ended.
struct Result {
  long step = 0;
  long saved = -1;  // step of the checkpoint
  Score score;
  double seconds = 0;
  bool stopped = false;  // before its last step
  std::vector<TensorSize> tensors;
};

inline std::string score_name(const Data& data) { return data.text ? "bits_per_byte" : "accuracy"; }

inline std::string describe(const Data& data, const Score& score) {
  return fmt::format("{:.4f} nats, {:.4f} {}", score.nats, score.score,
                     data.text ? "bits per byte" : "accuracy");
}

class Outputs;

/// Trains a model in float or double, from its initial values or from the checkpoint, which carries
/// `inputs`. Calls
/// when_ready() when the settings have turned out to fit, before the first step.
/// Throws:   InvalidInput for settings that do not fit the plan or the checkpoint, and for files
///           that it would write over; Diverged.
template <class Scalar>
Result train_model(const Settings& settings, const Data& data, const Plan& plan,
                   const files::Inputs& inputs, Outputs& outputs,
                   const std::function<void()>& when_ready);

}  // namespace scalewise::train
