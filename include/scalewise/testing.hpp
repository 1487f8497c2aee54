// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Matchers for your unit tests, with Catch2 (2 and 3) or GoogleTest: a tensor starts as planned, an optimizer
// follows a plan, a training run passes the coordinate check.
#pragma once

#include "scalewise/testing/follows_plan.hpp"
#include "scalewise/testing/passes_coordinate_check.hpp"
#include "scalewise/testing/starts_as.hpp"
