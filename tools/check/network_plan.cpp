// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "check/network_plan.hpp"

#include "train/model.hpp"

namespace scalewise::experiment {

Plan network_plan(const train::Settings& settings, const train::Data& data) {
  return train::plan_of(settings, train::data_shape(settings, data));
}

}  // namespace scalewise::experiment
