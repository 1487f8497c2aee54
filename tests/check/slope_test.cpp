// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/slope.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "scalewise/check/band.hpp"
#include "scalewise/check/moments.hpp"
#include "support/catch.hpp"

using namespace scalewise::check;

TEST_CASE("Quantiles of Student's t are those of the tables") {
  // Two-sided 95 %, from the usual printed table.
  CHECK(t_quantile(1) == Approx(12.706).margin(1e-3));
  CHECK(t_quantile(2) == Approx(4.303).margin(1e-3));
  CHECK(t_quantile(3) == Approx(3.182).margin(2e-2));
  CHECK(t_quantile(5) == Approx(2.571).margin(2e-3));
  CHECK(t_quantile(10) == Approx(2.228).margin(1e-3));
  CHECK(t_quantile(30) == Approx(2.042).margin(1e-3));
  CHECK(t_quantile(1000) == Approx(1.962).margin(1e-3));
}

TEST_CASE("A line of least squares has the slope and the error of the textbook") {
  // Five points worked out by hand: x̄ = 3, ȳ = 4, Sxx = 10, Sxy = 6, Σr² = 2.4.
  const std::vector<double> x{1, 2, 3, 4, 5};
  const std::vector<double> y{2, 4, 5, 4, 5};
  const Line line = fit_line(x, y);
  CHECK(line.slope == Approx(0.6));
  CHECK(line.intercept == Approx(2.2));
  CHECK(line.error == Approx(3.182 * std::sqrt(2.4 / 3 / 10)).epsilon(6e-3));

  const Line exact = fit_line(std::vector<double>{0, 1, 3}, std::vector<double>{1, -1, -5});
  CHECK(exact.slope == Approx(-2));
  CHECK(exact.error < 1e-12);
  CHECK(fit_line(std::vector<double>{0, 1}, std::vector<double>{0, 1}).error == HUGE_VAL);
}

TEST_CASE("Moments of parts add up to those of the whole") {
  std::vector<float> data;
  for (int i = 0; i < 1000; ++i) data.push_back(static_cast<float>(i % 7) - 3);
  Moments whole;
  whole.add(data.data(), data.size());
  Moments parts;
  for (const std::size_t begin : {0U, 300U, 601U}) {
    const std::size_t end = begin == 0 ? 300 : begin == 300 ? 601 : 1000;
    Moments part;
    part.add(data.data() + begin, end - begin);
    parts += part;
  }
  CHECK(parts == whole);  // whole numbers: sums are exact
  double abs = 0;
  double squares = 0;
  for (const float x : data) {
    abs += std::abs(static_cast<double>(x));
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  CHECK(whole.mean_abs() == abs / 1000);
  CHECK(whole.rms() == std::sqrt(squares / 1000));
  CHECK(Moments{}.rms() == 0);
}

TEST_CASE("Bands add, and of a sum the fastest term counts") {
  CHECK(Band(1, 2) + Band(-1, 0.5) == Band(0, 2.5));
  CHECK(Band(1, 2) - Band(-1, 0.5) == Band(0.5, 3));
  CHECK(sum(Band(-1, 0), Band(-0.5, -0.25)) == Band(-0.5, 0));
  CHECK(sum(Band::zero(), Band(-3)) == Band(-3));
  CHECK((Band::zero() + Band(5)).is_zero());
  CHECK(mixture(Band(-1), Band(1, 2)) == Band(-1, 2));
  CHECK(mixture(Band::zero(), Band(1, 2)) == Band(1, 2));
  CHECK(bounded(Band(-1, -0.5)) == Band(-1, -0.5));
  CHECK(bounded(Band(-0.5, 1)) == Band(-0.5, 0));
  CHECK(-2 * Band(1, 2) == Band(-4, -2));
}
