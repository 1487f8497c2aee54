// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>

namespace scalewise::experiment {

/// Called after each step of a run with the number of steps that it has made; false ends the run early.
using AfterStep = std::function<bool(long)>;

}  // namespace scalewise::experiment
