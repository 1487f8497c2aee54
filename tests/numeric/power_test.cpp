// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/numeric/power.hpp"

#include <cmath>
#include <cstdint>

#include "scalewise/policy/relu_correlation.hpp"
#include "support/catch.hpp"

using namespace scalewise;

namespace {

/// Numbers in (0, 1), the same on every platform.
class Draws {
 public:
  double next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (static_cast<double>(state_ >> 11U) + 0.5) / 9007199254740992.0;
  }

 private:
  std::uint64_t state_ = 20261120;
};

}  // namespace

// The bounds are those of the doc comments; the reference is <cmath> in long double.

TEST_CASE("Roots are good to two units in the last place", "[power]") {
  Draws draws;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(1200 * draws.next() - 600);
    const int q = 1 + i % 64;
    const long double exact = std::pow(static_cast<long double>(x), 1.0L / q);
    REQUIRE(std::abs(static_cast<double>(numeric::root(x, q) / exact - 1)) < 2 * 2.3e-16);
  }
  CHECK(numeric::root(0, 3) == 0);
  CHECK(numeric::root(1, 7) == 1);
  CHECK(numeric::root(4096, 2) == 64);
  CHECK(numeric::root(1.0 / 64, 3) == 0.25);
}

TEST_CASE("Fractional powers are good to 1e-14", "[power]") {
  Draws draws;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(30 * draws.next() - 15);
    const Exponent e(i % 9 - 4, 1 + i % 6);
    const long double exact =
        std::pow(static_cast<long double>(x), static_cast<long double>(e.num) / e.den);
    REQUIRE(std::abs(static_cast<double>(numeric::power(x, e) / exact - 1)) < 1e-14);
  }
  CHECK(numeric::power(1, Exponent(-3, 7)) == 1);
}

TEST_CASE("Real powers are good to 2e-15 (1 + |e ln x|)", "[power]") {
  Draws draws;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::exp(28 * draws.next() - 14);
    const double e = 6 * draws.next() - 3;
    const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(e));
    const double bound = 2e-15 * (1 + std::abs(e * std::log(x)));
    REQUIRE(std::abs(static_cast<double>(numeric::real_power(x, e) / exact - 1)) < bound);
  }
  static_assert(numeric::power(1, exponent(0.1234567)) == 1);
}

TEST_CASE("The arc sine is good to 2e-15", "[power]") {
  for (int i = -10000; i <= 10000; ++i) {
    const double r = i / 10000.0;
    const long double exact = std::asin(static_cast<long double>(r));
    REQUIRE(std::abs(static_cast<double>(policy::arcsin(r) - exact)) < 2e-15);
  }
}

TEST_CASE("A ReLU's correlation map agrees with quadrature", "[correlation]") {
  // 2 E[relu(x) relu(y)] for standard normals of correlation r, y = r x + √(1-r²) z. The inner
  // integral over z is in closed form; the outer one is a midpoint sum, exact to 1e-10 here.
  for (const double r : {0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99}) {
    const double s = std::sqrt(1 - r * r);
    double sum = 0;
    const int points = 200000;
    const double step = 12.0 / points;
    for (int i = 0; i < points; ++i) {
      const double x = (i + 0.5) * step;
      const double mean = r * x;
      const double density =
          std::exp(-mean * mean / (2 * s * s)) / std::sqrt(2 * 3.14159265358979324);
      const double inner = mean * 0.5 * std::erfc(-mean / (s * std::sqrt(2.0))) + s * density;
      sum += x * inner * std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979324) * step;
    }
    CHECK(std::abs(policy::relu_correlation(r) - 2 * sum) < 1e-8);
  }
  CHECK(policy::relu_correlation(1) == 1);
  CHECK(policy::relu_correlation(1.0000000000000002) == 1);
}
