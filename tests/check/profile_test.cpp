// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Moments of arrays whose moments are known.

#include "scalewise/check/profile.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"

namespace {

using namespace scalewise::check;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using scalewise::test::error_message;

template <class Scalar>
TokenMoments moments_of(const std::vector<Scalar>& x, std::size_t columns, std::size_t sequences) {
  return token_moments(MatrixView<Scalar>{x.data(), x.size() / columns, columns}, sequences);
}

}  // namespace

TEST_CASE("Equal tokens have correlation one, whatever the mean") {
  // 2 sequences of 3 tokens of 2 features: 1 and 3 in one sequence, 5 and 7 in the other.
  const std::vector<double> x{1, 3, 1, 3, 1, 3, 5, 7, 5, 7, 5, 7};
  const TokenMoments m = moments_of(x, 2, 2);
  CHECK_THAT(m.mean, WithinRel(4, 1e-15));
  CHECK_THAT(m.variance, WithinRel((9 + 1 + 1 + 9) / 4.0, 1e-15));
  CHECK_THAT(m.correlation, WithinRel(1, 1e-15));
}

TEST_CASE("Opposite tokens of a sequence have correlation minus one") {
  const std::vector<float> x{1, 2, -1, -2, 3, -1, -3, 1};
  const TokenMoments m = moments_of(x, 2, 2);
  CHECK_THAT(m.mean, WithinAbs(0, 1e-15));
  CHECK_THAT(m.variance, WithinRel(30 / 8.0, 1e-15));
  CHECK_THAT(m.correlation, WithinRel(-1, 1e-15));
  // As one sequence of four tokens: the sum over all of them is 0, so pairs add up to -Σ x².
  CHECK_THAT(moments_of(x, 2, 1).correlation, WithinRel(-1 / 3.0, 1e-15));
}

TEST_CASE("Three tokens, by hand") {
  // One feature, tokens 0, 3, 6: mean 3, deviations -3, 0, 3, products of pairs -9, 0, 0.
  const std::vector<double> x{0, 3, 6};
  const TokenMoments m = moments_of(x, 1, 1);
  CHECK_THAT(m.variance, WithinRel(6, 1e-15));
  CHECK_THAT(m.correlation, WithinRel(-3 / 6.0, 1e-15));
}

TEST_CASE("A constructed correlation is found") {
  // x[token, feature] = e[feature] + d[token, feature], variances 0.3 and 0.7: correlation 0.3.
  std::mt19937_64 source(5);
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += std::ldexp(static_cast<double>(source() >> 11U), -53);
    return sum;
  };
  constexpr std::size_t tokens = 7;
  constexpr std::size_t features = 200;
  MeasuredProfile profile;
  for (int seed = 0; seed < 30; ++seed) {
    std::vector<float> x(4 * tokens * features);
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t c = 0; c < features; ++c) {
        const double shared = std::sqrt(0.3) * normal();
        for (std::size_t t = 0; t < tokens; ++t) {
          x[(s * tokens + t) * features + c] =
              static_cast<float>(10 + 2 * (shared + std::sqrt(0.7) * normal()));
        }
      }
    }
    profile.add("stream", moments_of(x, features, 4));
  }
  const MeasuredProfile::Estimates row = profile.at("stream");
  CHECK(row.variance.count == 30);
  CHECK(std::abs(row.mean.mean - 10) < 5 * row.mean.standard_error);
  CHECK(std::abs(row.variance.mean - 4) < 5 * row.variance.standard_error);
  CHECK(std::abs(row.correlation.mean - 0.3) < 5 * row.correlation.standard_error);
  // The error of a correlation from 4 x 200 independent columns: a rough bound from both sides.
  CHECK(row.correlation.standard_error < 0.01);
  CHECK(row.correlation.standard_error > 0.001);
}

TEST_CASE("A large mean costs no accuracy") {
  const std::vector<double> x{1e9 + 1, 1e9 - 1, 1e9 + 1, 1e9 - 1};
  CHECK_THAT(moments_of(x, 2, 1).variance, WithinRel(1, 1e-15));
  CHECK_THAT(moments_of(x, 2, 1).correlation, WithinRel(1, 1e-15));
}

TEST_CASE("Profiles keep the order of places and merge") {
  MeasuredProfile a;
  a.add("b", {1, 2, 0.5});
  a.add("a", {1, 8, 0.5});
  MeasuredProfile b;
  b.add("b", {3, 6, 0.5});
  b.add("c", {0, 1, 0.5});
  a.add(b);
  CHECK(a.places() == std::vector<std::string>{"b", "a", "c"});
  CHECK_THAT(a.at("b").variance.mean, WithinRel(4, 1e-15));
  CHECK_THAT(a.at("b").variance.standard_error, WithinRel(2, 1e-15));
  CHECK(a.at("a").variance.count == 1);
  CHECK(a.variances("b") == std::vector<double>{2, 6});
  CHECK(error_message([&] { a.at("d"); }) == "place = d: expected one that was measured");
}

TEST_CASE("Growth per layer of a geometric series is its ratio") {
  CHECK_THAT(growth_per_layer(std::vector<double>{3, 6, 12, 24}), WithinRel(2, 1e-14));
  CHECK_THAT(growth_per_layer(std::vector<double>{9, 3}), WithinRel(1 / 3.0, 1e-14));
  // Ends 1 and 4 with the middle at 4: least squares has the slope of the ends.
  CHECK_THAT(growth_per_layer(std::vector<double>{1, 4, 4}), WithinRel(2, 1e-14));
  CHECK(std::isnan(growth_per_layer(std::vector<double>{1})));
}

TEST_CASE("Moments that are not defined are not numbers, and shapes have to fit") {
  CHECK(std::isnan(moments_of(std::vector<double>{1, 2}, 1, 2).correlation));
  CHECK(std::isnan(moments_of(std::vector<double>{2, 2}, 1, 1).correlation));
  CHECK(error_message([] {
          moments_of(std::vector<double>{1, 2, 3}, 1, 2);
        }) == "activation = 3 x 1: expected a positive multiple of 2 rows");
}
