// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/check/band.hpp"

#include <cmath>
#include <vector>

#include "scalewise/check/moments.hpp"
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
