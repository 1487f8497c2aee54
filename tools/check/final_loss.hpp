// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// How well a model learns at a rate.
#pragma once

#include <optional>

#include "check/after_step.hpp"
#include "scalewise/plan/plan.hpp"
#include "train/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Trains a model and takes the mean loss over the last tenth of its steps: each batch is measured
/// before the step that learns from it, and windows hardly repeat in a short run, so this is close
/// to a validation loss, at no cost. Runs of one seed read the same batches, whatever rate or width
/// they have, so that what is common to them cancels in differences.
/// Returns:  infinity if the run diverged, as DivergenceWatch tells; nothing if it was interrupted.
std::optional<double> final_loss(const train::Settings& s, const train::Data& data,
                                 const AfterStep& after_step = {});

/// The final loss under a given plan, whatever the settings say of one.
std::optional<double> final_loss(const Plan& plan, const train::Settings& s,
                                 const train::Data& data, const AfterStep& after_step = {});

}  // namespace scalewise::experiment
