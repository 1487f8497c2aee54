// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/windows.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise::data;
using namespace scalewise::test;
using Eigen::Index;
using scalewise::nn::Batch;

/// 0, 1, 2 …: a token is its own place.
std::vector<int> ascending(int size) {
  std::vector<int> tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// Where windows of ascending() begin; fails unless tokens follow each other and targets them.
std::vector<int> starts_of(const Batch<float>& batch, Index length) {
  REQUIRE(static_cast<Index>(batch.tokens.size()) == batch.size * length);
  REQUIRE(batch.targets.size() == batch.tokens.size());
  std::vector<int> starts;
  bool follow = true;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    const auto within = static_cast<int>(i % static_cast<std::size_t>(length));
    if (within == 0) starts.push_back(batch.tokens[i]);
    follow = follow && batch.tokens[i] == starts.back() + within &&
             batch.targets[i] == batch.tokens[i] + 1;
  }
  CHECK(follow);
  return starts;
}

std::vector<int> random_starts(int size, Index batch, Index length, std::uint64_t seed,
                               std::uint64_t step) {
  return starts_of(random_windows<float>(ascending(size), batch, length, seed, step), length);
}

}  // namespace

TEST_CASE("Random windows are those of an independent computation", "[data]") {
  // SplitMix64 and FNV-1a written again in Python.
  CHECK(random_starts(1000, 4, 10, 7, 0) == std::vector<int>{840, 685, 868, 796});
  CHECK(random_starts(1000, 4, 10, 7, 1) == std::vector<int>{713, 227, 204, 435});
  CHECK(random_starts(1000, 4, 10, 8, 12345678901) == std::vector<int>{531, 760, 747, 959});
}

TEST_CASE("Random windows begin everywhere alike, the last place included", "[data]") {
  const int size = 23;
  const int length = 16;
  const int batch = 70'000;
  std::vector<int> counts(size - length);
  for (const int start : random_starts(size, batch, length, 1, 0)) {
    ++counts.at(static_cast<std::size_t>(start));
  }
  const double p = 1.0 / (size - length);
  for (const int count : counts) {
    CHECK(std::abs(count - batch * p) <= standard_errors * std::sqrt(batch * p * (1 - p)));
  }
}

TEST_CASE("A step's windows do not depend on the batch size and fit any scalar", "[data]") {
  const auto few = random_windows<double>(ascending(500), 3, 8, 5, 9);
  const auto many = random_windows<float>(ascending(500), 6, 8, 5, 9);
  CHECK(few.size == 3);
  CHECK(std::equal(few.tokens.begin(), few.tokens.end(), many.tokens.begin()));
}

TEST_CASE("Validation windows hold every target once", "[data]") {
  for (const int size : {13, 14, 15, 16, 17}) {
    INFO(size);
    const std::vector<int> tokens = ascending(size);
    const Index count = window_count(tokens, 4);
    CHECK(count == (size - 1) / 4);
    std::vector<int> targets;
    for (Index first = 0; first < count; first += 2) {
      const auto batch = validation_windows<float>(tokens, 2, 4, first);
      CHECK(batch.size == std::min<Index>(2, count - first));
      CHECK(starts_of(batch, 4).front() == 4 * first);
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
    std::vector<int> expected(static_cast<std::size_t>(4 * count));
    std::iota(expected.begin(), expected.end(), 1);
    CHECK(targets == expected);
  }
}

TEST_CASE("Windows that are not there are refused", "[data]") {
  const std::vector<int> tokens = ascending(9);
  const auto random = [&](Index batch, Index length) {
    return error_message([&] { random_windows<float>(tokens, batch, length, 1, 1); });
  };
  const auto validation = [&](Index batch, Index length, Index first) {
    return error_message([&] { validation_windows<float>(tokens, batch, length, first); });
  };
  CHECK(random(1, 8) == "no error");
  CHECK(random(1, 9) == "tokens = 9: expected more than the window length = 9");
  CHECK(random(1, std::numeric_limits<Index>::max()) != "no error");
  CHECK(random(1, 0) == "length = 0: expected a positive integer");
  CHECK(random(1, -3) == "length = -3: expected a positive integer");
  CHECK(random(0, 4) == "batch = 0: expected a positive integer");
  CHECK(validation(3, 4, 1) == "no error");
  CHECK(validation(3, 4, 2) == "first = 2: expected a window in [0, 2)");
  CHECK(validation(3, 4, -1) == "first = -1: expected a window in [0, 2)");
  CHECK(validation(-1, 4, 0) == "batch = -1: expected a positive integer");
  CHECK(validation(1, 9, 0) == "tokens = 9: expected more than the window length = 9");
  CHECK(error_message([] { window_count({}, 1); }) ==
        "tokens = 0: expected more than the window length = 1");
}
