// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
/// scalewise: from a transformer's shape to every tensor's initial variance, learning rate, decay
/// and multiplier, under a published rule. This header needs the standard library only. Beside it
/// stand presets.hpp (shapes of published models), registry.hpp (rules chosen by name at run time),
/// formulation.hpp (one rule in several forms), io/ (files and JSON), nn/ (a reference transformer)
/// and check/ (does training follow the rule?).
#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "scalewise needs C++20: compile with -std=c++20, or /std:c++20"
#else

#include "scalewise/core/axis.hpp"
#include "scalewise/core/error.hpp"
#include "scalewise/core/exponent.hpp"
#include "scalewise/core/group.hpp"
#include "scalewise/core/policy.hpp"
#include "scalewise/core/print.hpp"
#include "scalewise/core/row.hpp"
#include "scalewise/core/scaling.hpp"
#include "scalewise/core/shape.hpp"
#include "scalewise/core/tensor.hpp"
#include "scalewise/core/values.hpp"
#include "scalewise/make_plan.hpp"
#include "scalewise/plan.hpp"
#include "scalewise/policy/all.hpp"

#endif
