// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/core/row.hpp"

namespace scalewise::test {

inline constexpr Optimizer sgd = Optimizer::sgd;
inline constexpr Optimizer adamw = Optimizer::adamw;

}  // namespace scalewise::test
