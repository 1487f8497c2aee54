// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Numbers that nobody should hand over, for tests that functions return or throw InvalidInput, in
// time. Under the sanitizers of CI, an overflow or a conversion that does not fit ends the test.

#pragma once

#include <chrono>
#include <climits>
#include <limits>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "support/catch.hpp"

namespace scalewise::test {

using limit = std::numeric_limits<double>;
inline const std::vector<double> hostile{limit::quiet_NaN(),
                                         limit::infinity(),
                                         -limit::infinity(),
                                         -1,
                                         0,
                                         1e308,
                                         -1e308,
                                         limit::denorm_min(),
                                         0.5,
                                         2};
inline const std::vector<long> whole{LONG_MIN, INT_MIN, -1, 0, 1, 7, INT_MAX, LONG_MAX};

/// Calls f and gives it a second; the slowest of them sums 2^20 terms.
template <class F>
void call(const std::string& name, F&& f) {
  INFO(name);
  const auto start = std::chrono::steady_clock::now();
  try {
    f();
  } catch (const InvalidInput&) {
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 10);  // a loaded machine is not a hang
}

}  // namespace scalewise::test
