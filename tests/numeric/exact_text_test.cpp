// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/numeric/exact_text.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "support/catch.hpp"

namespace {

std::string by_to_chars(double x) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof(text), x).ptr};
}

}  // namespace

TEST_CASE("by printf, numbers have the text of std::to_chars") {
  const auto check = [](double x) {
    CHECK(scalewise::numeric::detail::exact_text_by_printf(x) == by_to_chars(x));
    CHECK(scalewise::numeric::detail::exact_text_by_printf(-x) == by_to_chars(-x));
  };
  using Limits = std::numeric_limits<double>;
  for (const double x :
       {0.0, 1.0, 0.5, 1600.0, 100000.0, 123456.0, 1e-4, 1e-5, 1e22, 1e23, 0.1, 1.0 / 3, 2.0 / 3,
        1e300, Limits::max(), Limits::min(), Limits::denorm_min(), Limits::infinity()}) {
    check(x);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double x = static_cast<double>(random() >> 11U) * 0x1p-53;
    check(x);
    check(std::ldexp(x, static_cast<int>(random() % 2000) - 1000));
    check(std::round(x * 1e9));
    check(std::round(x * 1e4) / 1e3);
  }
}
