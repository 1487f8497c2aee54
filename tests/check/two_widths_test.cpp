// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/two_widths.hpp"

#include <cstdint>
#include <utility>

#include "support/catch.hpp"

using namespace scalewise::check;

TEST_CASE("Of two widths the usual criterion asks for a factor of 1.2") {
  Records records;
  const auto one = [&](const char* name, long n, double mean) {
    records.add({Signal::value, name}, 1, {n, 1}, {mean, mean * mean, 1});
  };
  one("even", 64, 1);
  one("even", 1024, 1.19);
  one("odd", 64, 1);
  one("odd", 1024, 0.5);
  const TwoWidths t = two_widths(records);
  CHECK(t.modules == 2);
  CHECK(t.met == 1);
  CHECK(t.worst == "odd");
  CHECK(t.worst_ratio == 0.5);
  // Means over two seeds; the width between them does not count.
  const auto met = [](double ratio) {
    Records pair;
    for (const std::uint64_t seed : {1U, 2U}) {
      const double by = seed == 1 ? 0.5 : 1.5;
      for (const auto& [n, mean] : {std::pair{64L, by}, {256L, 99.0}, {1024L, by * ratio}}) {
        pair.add({Signal::value, "h"}, 1, {n, seed}, {mean, mean * mean, 1});
      }
    }
    return two_widths(pair).met;
  };
  CHECK(met(1.199) == 1);
  CHECK(met(1.201) == 0);
  CHECK(met(1 / 1.199) == 1);
  CHECK(met(1 / 1.201) == 0);
}
