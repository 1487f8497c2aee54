// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "scalewise/data/infilling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/error_message.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise;
using namespace scalewise::data;
using namespace scalewise::test;
using Eigen::Index;
using scalewise::nn::Batch;

constexpr Infilling noise{.mask = -1, .start = -2};

/// Sequences in which every token is its own place.
Batch<float> places(Index size, Index length) {
  Batch<float> batch;
  batch.size = size;
  for (Index i = 0; i < size; ++i) {
    for (int t = 0; t < length; ++t) batch.tokens.push_back(t);
  }
  return batch;
}

Batch<float> corrupted(Index size, Index length, std::uint64_t seed, const Infilling& how = noise) {
  return infilling(places(size, length), how, {seed, "test"});
}

std::vector<int> row(const std::vector<int>& all, Index size, Index i) {
  const Index length = static_cast<Index>(all.size()) / size;
  return {all.begin() + i * length, all.begin() + (i + 1) * length};
}

/// How many tokens each mask of a source stands for, read from the places of the tokens around it.
std::vector<int> span_lengths(const std::vector<int>& source, int length) {
  std::vector<int> lengths;
  int next = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != noise.mask) {
      next = source[i] + 1;
      continue;
    }
    lengths.push_back((i + 1 < source.size() ? source[i + 1] : length) - next);
  }
  return lengths;
}

/// Accepts a count of independent events of these probabilities.
void check_count(const std::string& what, double count, const std::vector<double>& chances) {
  double mean = 0;
  double variance = 0;
  for (const double p : chances) mean += p, variance += p * (1 - p);
  INFO(what << ": " << count << ", expected " << mean);
  CHECK(std::abs(count - mean) <= standard_errors * std::sqrt(variance));
}

}  // namespace

TEST_CASE("A decoder restores the tokens, and sees the one before each", "[data]") {
  const Batch<float> batch = corrupted(3, 10, 1);
  CHECK(batch.size == 3);
  CHECK(batch.targets == places(3, 10).tokens);
  for (Index i = 0; i < 3; ++i) {
    CHECK(row(batch.tokens, 3, i) == std::vector<int>{noise.start, 0, 1, 2, 3, 4, 5, 6, 7, 8});
  }
}

TEST_CASE("A source is the tokens with spans replaced by masks", "[data]") {
  for (const Index length : {2, 3, 4, 5, 9, 32, 64, 257}) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      INFO("length " << length << ", seed " << seed);
      const Batch<float> batch = corrupted(2, length, seed);
      const auto cut = std::max(1L, std::lround(0.3 * static_cast<double>(length)));
      REQUIRE(static_cast<Index>(batch.source.size()) <= 2 * length);
      std::vector<int> lengths[2];
      for (Index i = 0; i < 2; ++i) {
        const std::vector<int> source = row(batch.source, 2, i);
        std::vector<int> kept;
        bool touching = false;
        for (std::size_t t = 0; t < source.size(); ++t) {
          if (source[t] != noise.mask) kept.push_back(source[t]);
          touching |= t > 0 && source[t] == noise.mask && source[t - 1] == noise.mask;
        }
        CHECK_FALSE(touching);
        CHECK(static_cast<long>(kept.size()) == length - cut);
        CHECK(std::is_sorted(kept.begin(), kept.end()));
        CHECK(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
        lengths[i] = span_lengths(source, static_cast<int>(length));
        long sum = 0;
        for (const int span : lengths[i]) sum += span;
        CHECK(sum == cut);
        std::sort(lengths[i].begin(), lengths[i].end());
      }
      CHECK(lengths[0] == lengths[1]);
    }
  }
}

// Given the number of spans k among u tokens that stay, each of the u + 1 gaps has one with probability k/(u + 1).
// One sequence per batch, so that sequences are independent.
TEST_CASE("Spans are everywhere alike", "[data]") {
  constexpr int length = 20;
  constexpr int kept = 14;
  std::map<int, double> counts;
  std::vector<double> chances;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::vector<int> source = corrupted(1, length, seed).source;
    chances.push_back(static_cast<double>(source.size() - kept) / (kept + 1));
    int gap = 0;
    for (const int token : source) {
      if (token == noise.mask) ++counts[gap];
      if (token != noise.mask) ++gap;
    }
  }
  for (int gap = 0; gap <= kept; ++gap) {
    check_count("gap " + std::to_string(gap), counts[gap], chances);
  }
}

// About 100 spans cut 300 of 1000 tokens. Only the last one that is drawn has another distribution, as it is shortened.
TEST_CASE("Span lengths are Poisson numbers", "[data]") {
  constexpr int length = 1000;
  std::map<int, double> counts;
  double spans = 0;
  double batches = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed, ++batches) {
    for (const int span : span_lengths(corrupted(1, length, seed).source, length)) {
      ++counts[span];
      ++spans;
    }
  }
  double p = std::exp(-3.0);
  for (int k = 0; k <= 8; p *= 3.0 / ++k) {
    INFO("length " << k << ": " << counts[k] << " of " << spans);
    CHECK(std::abs(counts[k] - spans * p) <=
          standard_errors * std::sqrt(spans * p * (1 - p)) + batches);  // one span of each batch
  }
}

TEST_CASE("Sentences of a source are permuted, each order as often", "[data]") {
  // 0 1 | 2 3 4 4 | 5 and a mask for one token, which is cut from any of them: sentences end after 1, and 4 4.
  constexpr std::array<int, 2> ends{1, 4};
  Batch<float> batch;
  batch.size = 1;
  batch.tokens = {0, 1, 2, 3, 4, 4, 5};
  const Infilling how{
      .mask = -1, .start = -2, .fraction = 0.1, .mean_span = 1, .sentence_ends = ends};
  const std::vector<std::vector<int>> sentences{{0, 1}, {2, 3, 4, 4}, {5}};
  std::map<std::vector<int>, double> counts;
  constexpr int draws = 6000;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    const Batch<float> one = infilling(batch, how, {seed, "test"});
    REQUIRE(one.targets == batch.tokens);
    std::vector<int> order{0, 1, 2};
    int fits = 0;
    do {
      std::vector<int> whole;
      for (const int i : order) {
        const auto& sentence = sentences[static_cast<std::size_t>(i)];
        whole.insert(whole.end(), sentence.begin(), sentence.end());
      }
      // The source without its masks is the whole without one token.
      std::vector<int> kept = one.source;
      std::erase(kept, how.mask);
      bool found = false;
      for (std::size_t cut = 0; cut < whole.size(); ++cut) {
        std::vector<int> without = whole;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(cut));
        found |= without == kept;
      }
      if (!found) continue;
      ++fits;
      ++counts[order];
    } while (std::next_permutation(order.begin(), order.end()));
    REQUIRE(fits >= 1);
  }
  // Where 5 alone is cut, its place is open: one of seven draws counts for three orders.
  REQUIRE(counts.size() == 6);
  for (const auto& [order, count] : counts) {
    const double chance = (6.0 / 7) / 6 + (1.0 / 7) / 2;
    CHECK(std::abs(count - draws * chance) <=
          standard_errors * std::sqrt(draws * chance * (1 - chance)));
  }
}

TEST_CASE("Noise is a function of its stream", "[data]") {
  CHECK(corrupted(2, 50, 4).source == corrupted(2, 50, 4).source);
  CHECK(corrupted(2, 50, 4).source != corrupted(2, 50, 5).source);
}

TEST_CASE("Noise that is not possible is refused", "[data]") {
  const auto message = [](Index size, Index length, double fraction, double span) {
    return error_message([&] {
      corrupted(size, length, 1,
                {.mask = -1, .start = -2, .fraction = fraction, .mean_span = span});
    });
  };
  CHECK(message(1, 2, 0.3, 3) == "no error");
  CHECK(message(1, 40, 0.999, 0.01) == "no error");
  CHECK(message(1, 1, 0.3, 3) == "length = 1: expected 2 or more tokens to mask");
  CHECK(message(0, 8, 0.3, 3) == "length = 0: expected 2 or more tokens to mask");
  CHECK(message(1, 8, 0, 3) == "fraction = 0: expected a fraction between 0 and 1");
  CHECK(message(1, 8, 1, 3) == "fraction = 1: expected a fraction between 0 and 1");
  CHECK(message(1, 8, std::nan(""), 3) == "fraction = nan: expected a fraction between 0 and 1");
  CHECK(message(1, 8, 0.3, 0) == "mean_span = 0: expected above 0, at most 100");
  CHECK(message(1, 8, 0.3, 101) == "mean_span = 101: expected above 0, at most 100");
}
