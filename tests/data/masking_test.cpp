// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/masking.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::data;
using namespace scalewise::test;
using scalewise::nn::Batch;
using scalewise::nn::no_target;

constexpr int vocabulary = 50;
constexpr Masking bert{.mask = vocabulary, .tokens = vocabulary};

/// Text of every token in turn, with targets that are to be replaced.
Batch<float> in_turn(std::size_t size) {
  Batch<float> batch;
  batch.size = 1;
  for (std::size_t t = 0; t < size; ++t) batch.tokens.push_back(static_cast<int>(t % vocabulary));
  batch.targets.assign(size, 7);
  return batch;
}

Batch<float> masked(std::size_t size, std::uint64_t seed, const Masking& how = bert) {
  return masking(in_turn(size), how, {seed, "test"});
}

/// Accepts a count of independent events of one probability.
void check_count(const std::string& what, double count, double events, double probability) {
  INFO(what << ": " << count << " of " << events);
  CHECK(std::abs(count - events * probability) <=
        standard_errors * std::sqrt(events * probability * (1 - probability)));
}

}  // namespace

TEST_CASE("Chosen tokens are the targets, and all others stay", "[data]") {
  const Batch<float> batch = masked(10000, 1);
  const std::vector<int> before = in_turn(10000).tokens;
  CHECK(batch.size == 1);
  REQUIRE(batch.targets.size() == before.size());
  REQUIRE(batch.tokens.size() == before.size());
  for (std::size_t t = 0; t < before.size(); ++t) {
    if (batch.targets[t] == no_target) {
      REQUIRE(batch.tokens[t] == before[t]);
    } else {
      REQUIRE(batch.targets[t] == before[t]);
      REQUIRE((batch.tokens[t] >= 0 && batch.tokens[t] <= vocabulary));
    }
  }
}

TEST_CASE("Tokens are chosen, masked and changed as often as stated", "[data]") {
  constexpr double size = 200000;
  const Batch<float> batch = masked(static_cast<std::size_t>(size), 2);
  double chosen = 0;
  double hidden = 0;
  double changed = 0;
  for (std::size_t t = 0; t < batch.tokens.size(); ++t) {
    if (batch.targets[t] == no_target) continue;
    ++chosen;
    if (batch.tokens[t] == vocabulary) {
      ++hidden;
    } else if (batch.tokens[t] != batch.targets[t]) {
      ++changed;
    }
  }
  check_count("chosen", chosen, size, 0.15);
  check_count("masked", hidden, chosen, 0.8);
  // A random token is the same as before once in as many times.
  check_count("changed", changed, chosen, 0.1 * (vocabulary - 1) / vocabulary);
}

TEST_CASE("A batch has a target, whatever the fraction", "[data]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Batch<float> batch =
        masked(3, seed, {.mask = vocabulary, .tokens = vocabulary, .fraction = 1e-9});
    int chosen = 0;
    for (const int target : batch.targets) chosen += target != no_target ? 1 : 0;
    CHECK(chosen == 1);
  }
}

TEST_CASE("The same seed masks the same tokens, another one others", "[data]") {
  CHECK(masked(500, 3).tokens == masked(500, 3).tokens);
  CHECK(masked(500, 3).tokens != masked(500, 4).tokens);
}

TEST_CASE("Masking says what is wrong with its numbers", "[data]") {
  const auto message = [](std::size_t size, const Masking& how) {
    return error_message([&] { masked(size, 1, how); });
  };
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(message(9, {.mask = 5, .tokens = 5, .fraction = 0}) ==
        "fraction = 0: expected a fraction between 0 and 1");
  CHECK(message(9, {.mask = 5, .tokens = 5, .fraction = none}) ==
        "fraction = nan: expected a fraction between 0 and 1");
  CHECK(message(9, {.mask = 5, .tokens = 5, .masked = 0.9, .random = 0.2}) ==
        "masked + random = 1.1: expected fractions that add up to at most 1");
  CHECK(message(9, {.mask = 5, .tokens = 0}) == "tokens = 0: expected a positive number of ids");
  CHECK(message(0, bert) == "windows = none: expected a token to mask");
}
