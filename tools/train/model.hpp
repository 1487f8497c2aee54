// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// From settings to a plan, and what a model needs besides it.
#pragma once

#include <optional>

#include "scalewise/nn/config.hpp"
#include "scalewise/nn/initialize.hpp"
#include "scalewise/nn/optimizer.hpp"
#include "scalewise/nn/schedule.hpp"
#include "scalewise/plan/plan.hpp"
#include "train/settings.hpp"

namespace scalewise::train {

/// Fields that the settings leave open are as in the rule's text, if the text says it, or else as in nn::Config.
nn::Config config_of(const Settings& s);

/// Leaves nothing open, so that options name what is trained, and says on standard error what is not as in the rule's
/// text.
void settle(Settings& s);

/// Throws:   InvalidInput for what no rule, shape or --set key allows.
Plan plan_of(const Settings& open, Shape target);

nn::OptimizerConfig optimizer_of(const Settings& s);
nn::Schedule schedule_of(const Settings& s);

/// Deviations of the base model, for a relative rule: the same everywhere.
std::optional<nn::BaseDeviation> base_deviation(const Settings& s, const Plan& plan);

}  // namespace scalewise::train
