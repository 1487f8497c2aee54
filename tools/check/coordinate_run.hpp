// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// One run of a coordinate check on the reference transformer: a few steps on one batch, recorded.
// Library check_reference.
#pragma once

#include <vector>

#include "check/after_step.hpp"
#include "scalewise/check/optimizer_check.hpp"
#include "scalewise/check/records.hpp"
#include "scalewise/plan/plan.hpp"
#include "train/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Trains a model for s.steps steps on one batch of its seed, by its `plan`: settings_at() of experiment.hpp gives a size
/// its settings, --base or the smallest size among them, and train::plan_of() makes the plan.
/// `gradient_scale` is what a fault does to the gradients of all tensors but the head's; 1 is none.
check::Records record_run(const train::Settings& s, const train::Data& data, const Plan& plan,
                          long size, double gradient_scale, const AfterStep& after_step = {});

/// The global learning rate that a short check trains with: the first step moves no matrix of a model
/// by more than 3 % of its root mean square. Where the optimizer does not normalize gradients they
/// are measured on one batch.
double usual_rate(const train::Settings& s, const train::Data& data, const Plan& plan);

/// The settings that the optimizer of the reference transformer really uses, tensor by tensor, with a weight decay
/// that the runs do without.
std::vector<check::OptimizerSetting> live_settings(const train::Settings& s, const Plan& plan,
                                                   double weight_decay);

}  // namespace scalewise::experiment
