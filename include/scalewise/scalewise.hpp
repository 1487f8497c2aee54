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

#include "scalewise/architecture/base_like.hpp"
#include "scalewise/architecture/group.hpp"
#include "scalewise/architecture/shape.hpp"
#include "scalewise/architecture/tensor.hpp"
#include "scalewise/architecture/values.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/exponent.hpp"
#include "scalewise/plan/make_plan.hpp"
#include "scalewise/plan/plan.hpp"
#include "scalewise/policy/all.hpp"
#include "scalewise/policy/policy.hpp"
#include "scalewise/policy/row.hpp"
#include "scalewise/scaling/formula.hpp"
#include "scalewise/scaling/scaling.hpp"
#include "scalewise/scaling/symbol.hpp"

#endif
