// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/zipf.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise::data;
using namespace scalewise::test;
using Catch::Matchers::WithinRel;

constexpr double relative = 1e-12;

/// Within 5 standard errors of a share of independent draws.
void check_share(double count, double draws, double p) {
  CHECK(std::abs(count - draws * p) <= standard_errors * std::sqrt(draws * p * (1 - p)));
}

}  // namespace

TEST_CASE("Zipf probabilities are their definition and sum to one", "[data]") {
  for (const double exponent : {0.0, 0.5, 1.0, 1.7, 10.0}) {
    const ZipfSource source(1000, exponent, 1);
    long double total = 0;
    for (int k = 1000; k >= 1; --k) total += std::pow(static_cast<long double>(k), -exponent);
    double sum = 0;
    for (int token = 0; token < source.vocab(); ++token) {
      const auto expected =
          static_cast<double>(std::pow(token + 1.0L, -static_cast<long double>(exponent)) / total);
      CHECK_THAT(source.probability(token), WithinRel(expected, relative));
      sum += source.probability(token);
    }
    CHECK_THAT(sum, WithinRel(1.0, relative));
  }
}

TEST_CASE("Zipf's repeat probability and entropy have their closed forms", "[data]") {
  const ZipfSource uniform(50, 0, 1);
  CHECK_THAT(uniform.repeat_probability(), WithinRel(1.0 / 50, relative));
  CHECK_THAT(uniform.entropy(), WithinRel(std::log(50.0), relative));
  const ZipfSource two(2, 1, 1);  // 2/3 and 1/3
  CHECK_THAT(two.repeat_probability(), WithinRel(5.0 / 9, relative));
  CHECK_THAT(two.entropy(), WithinRel(std::log(3.0) - 2 * std::log(2.0) / 3, relative));
  const ZipfSource three(3, 2, 1);  // 36/49, 9/49, 4/49
  CHECK_THAT(three.repeat_probability(), WithinRel(1393.0 / 2401, relative));
  const ZipfSource one(1, 1, 1);
  CHECK_THAT(one.repeat_probability(), WithinRel(1.0, relative));
  CHECK(one.entropy() == 0);
}

TEST_CASE("Zipf tokens come as often as their probabilities, and each independent of the last",
          "[data]") {
  const int length = 400'000;
  const ZipfSource source(12, 1.1, 3);
  const auto batch = source.windows<float>(1, length, 0);
  REQUIRE(batch.size == 1);
  std::vector<double> counts(12);
  double repeats = 0;  // of disjoint pairs
  double top_pairs = 0;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    ++counts.at(static_cast<std::size_t>(batch.tokens[i]));
    if (i % 2 == 0) continue;
    repeats += batch.tokens[i] == batch.tokens[i - 1];
    top_pairs += batch.tokens[i] == 0 && batch.tokens[i - 1] == 1;
  }
  for (int token = 0; token < 12; ++token) {
    check_share(counts[static_cast<std::size_t>(token)], length, source.probability(token));
  }
  check_share(repeats, length / 2.0, source.repeat_probability());
  check_share(top_pairs, length / 2.0, source.probability(0) * source.probability(1));
}

TEST_CASE("Zipf windows are those of an independent computation, and targets the next tokens",
          "[data]") {
  const ZipfSource source(5, 1.5, 11);
  const auto batch = source.windows<double>(2, 3, 4);
  // SplitMix64, FNV-1a and the inverse of the distribution written again in Python.
  CHECK(batch.tokens == std::vector<int>{1, 0, 4, 0, 0, 0});
  CHECK(batch.targets == std::vector<int>{0, 4, 0, 0, 0, 2});
  CHECK(batch.size == 2);
}

TEST_CASE("Zipf sources that are none are refused", "[data]") {
  const auto made = [](int vocab, double exponent) {
    return error_message([&] { ZipfSource(vocab, exponent, 1); });
  };
  CHECK(made(0, 1) == "vocab = 0: expected an integer from 1 to 16777216");
  CHECK(made(-1, 1) != "no error");
  CHECK(made((1 << 24) + 1, 1) != "no error");
  CHECK(made(3, -0.1) == "exponent = -0.1: expected a number from 0 to 10");
  CHECK(made(3, 10.5) != "no error");
  CHECK(made(3, std::numeric_limits<double>::quiet_NaN()) != "no error");
  const ZipfSource source(3, 1, 1);
  CHECK(error_message([&] { source.windows<float>(0, 3, 0); }) ==
        "batch = 0: expected a positive integer");
  CHECK(error_message([&] { source.windows<float>(2, 0, 0); }) ==
        "length = 0: expected a positive integer");
}
