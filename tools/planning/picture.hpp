// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Plans as pictures, apart from their text so that the playground does without.
#pragma once

#include <string>
#include <vector>

#include "scalewise/plan/plan.hpp"

namespace scalewise::tools {

/// An SVG file of a plan: its model with each number where it acts, or with `layers` a heat map of the numbers by
/// layer.
/// Throws:   InvalidInput for several plans.
std::string draw_plan(const std::vector<Plan>& plans, bool layers);

}  // namespace scalewise::tools
