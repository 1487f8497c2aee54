// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// The plan of a Network, compiled by itself, since it needs all rules.
#pragma once

#include "scalewise/plan/plan.hpp"
#include "train/data.hpp"
#include "train/settings.hpp"

namespace scalewise::experiment {

/// The plan of a model that learns the data. A rule that asks for dropout and the correlation of the input gets
/// those of the run, unless --set says otherwise; a line on stderr then says what differs.
/// Throws:   InvalidInput for what no rule, shape or --set key allows.
Plan network_plan(const train::Settings& settings, const train::Data& data, const Shape& shape);

inline Plan network_plan(const train::Settings& settings, const train::Data& data) {
  return network_plan(settings, data, train::data_shape(settings, data));
}

}  // namespace scalewise::experiment
