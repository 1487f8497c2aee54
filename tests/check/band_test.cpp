// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/band.hpp"

#include <cmath>
#include <vector>

#include "scalewise/check/moments.hpp"
#include "scalewise/check/moving.hpp"
#include "support/catch.hpp"

using namespace scalewise::check;

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

TEST_CASE("A product with a matrix moves by the largest of its three terms") {
  // z = m x W at 2^k of every size, by hand: m ~ -1/4, W0 ~ -1/2, ΔW ~ -1 over a fan-in ~ 1.
  scalewise::check::MovingMatrix w{.multiplier = -0.25,
                                   .start = -0.5,
                                   .change = -1,
                                   .fan_in = 1,
                                   .fan_out = 2,
                                   .alignment = {0.75, 1},
                                   .omega = {0.5, 0.875}};
  // m w √f x0 = -1/4 - 1/2 + 1/2 + 2; the change is m Δw f^α x0 unless Δx is as large as x0.
  CHECK(w.times({2, Band::zero()}).start == Band(1.75));
  CHECK(w.times({2, Band::zero()}).change == Band(1.5, 1.75));
  CHECK(w.times({2, 1}).change == Band(1.5, 1.75));
  // A matrix that does not move hands on what moves before it: m w f^ω Δx.
  w.change = Band::zero();
  CHECK(w.times({2, 1}).change == Band(0.75, 1.125));
  // One that starts at zero: m Δw f^α x0 or m Δw f^ν Δx, whichever is larger.
  w.change = -1;
  w.start = Band::zero();
  CHECK(w.times({2, 1}).start.is_zero());
  CHECK(w.times({2, 1}).change == Band(1.5, 1.75));
  CHECK(w.times({2, 3}).change == Band(2.5, 2.75));
  CHECK(w.times({Band::zero(), 3}).change == Band(2.5, 2.75));
  // Backward: m w √fan_out dz, or m Δw fan_out^α dz.
  CHECK(w.back(0.5) == Band(0.75, 1.25));
  w.start = -0.5;
  w.change = -2;
  CHECK(w.back(0.5) == Band(0.75));
}

TEST_CASE("Sums, products and turns of what moves") {
  const Moving x{1, 0.5};
  const Moving y{-0.25, 0.75};
  CHECK(sum(x, y).start == Band(1));
  CHECK(sum(x, y).change == Band(0.75));
  CHECK(product(x, y).start == Band(0.75));
  CHECK(product(x, y).change == Band(1.75));                   // x0 Δy
  CHECK(product(y, x).change == Band(1.75));                   // Δy x0
  CHECK(product({-9, 0.5}, {-9, 0.75}).change == Band(1.25));  // Δx Δy
  CHECK(relative_change(x) == Band(-0.5));
  CHECK(turn(y) == Band(0));  // no farther than its length
  CHECK(relative_change({Band::zero(), 0.5}) == Band(0.5));
}
