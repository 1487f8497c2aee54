// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/numeric/line.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace scalewise;

TEST_CASE("Quantiles of Student's t are those of the tables") {
  // Two-sided 95 %, from the usual printed table.
  CHECK(numeric::t_quantile(1) == Approx(12.706).margin(1e-3));
  CHECK(numeric::t_quantile(2) == Approx(4.303).margin(1e-3));
  CHECK(numeric::t_quantile(3) == Approx(3.182).margin(2e-2));
  CHECK(numeric::t_quantile(5) == Approx(2.571).margin(2e-3));
  CHECK(numeric::t_quantile(10) == Approx(2.228).margin(1e-3));
  CHECK(numeric::t_quantile(30) == Approx(2.042).margin(1e-3));
  CHECK(numeric::t_quantile(1000) == Approx(1.962).margin(1e-3));
}

TEST_CASE("A line of least squares has the slope and the error of the textbook") {
  // Five points worked out by hand: x̄ = 3, ȳ = 4, Sxx = 10, Sxy = 6, Σr² = 2.4.
  const std::vector<double> x{1, 2, 3, 4, 5};
  const std::vector<double> y{2, 4, 5, 4, 5};
  const numeric::Line line = numeric::fit_line(x, y);
  CHECK(line.slope == Approx(0.6));
  CHECK(line.intercept == Approx(2.2));
  CHECK(line.error == Approx(3.182 * std::sqrt(2.4 / 3 / 10)).epsilon(6e-3));

  const numeric::Line exact =
      numeric::fit_line(std::vector<double>{0, 1, 3}, std::vector<double>{1, -1, -5});
  CHECK(exact.slope == Approx(-2));
  CHECK(exact.error < 1e-12);
  CHECK(numeric::fit_line(std::vector<double>{0, 1}, std::vector<double>{0, 1}).error == HUGE_VAL);
}
