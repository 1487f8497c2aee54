// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The plan of a Network, compiled by itself, since it needs all rules.
#pragma once

#include "scalewise/plan/plan.hpp"
#include "train/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// Throws:   InvalidInput for what no rule, shape or --set key allows.
Plan network_plan(const train::Settings& settings, const train::Data& data);

}  // namespace scalewise::experiment
