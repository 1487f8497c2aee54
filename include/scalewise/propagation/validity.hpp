// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace scalewise::propagation {

/// Whether a formula is used where it holds.
struct Validity {
  std::string_view quantity;  // what has to stay small
  double value = 0;
  double limit = 0;

  constexpr bool holds() const { return value <= limit; }
};

}  // namespace scalewise::propagation
