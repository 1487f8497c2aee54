// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT

#include "support/ngram.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "scalewise/data/text.hpp"
#include "support/catch.hpp"
#include "support/tolerances.hpp"

namespace {

using namespace scalewise::test;
using Catch::Matchers::WithinRel;
using Weights = Ngram::Weights;

const std::vector<int> abacaba{0, 1, 0, 2, 0, 1, 0};

/// Tokens 0 … 4 that follow each other by a rule, and now and then by chance.
std::vector<int> text(std::size_t size) {
  std::vector<int> tokens{0, 1};
  unsigned state = 1;
  while (tokens.size() < size) {
    state = state * 1664525U + 1013904223U;
    const int last = tokens.back();
    const int older = tokens[tokens.size() - 2];
    const bool chance = (state >> 24U) < 90;
    tokens.push_back(chance ? static_cast<int>(state >> 16U & 0xffU) % 5 : (last + 2 * older) % 5);
  }
  return tokens;
}

double log_likelihood(const NgramCounts& counts, const std::vector<int>& tokens, std::size_t begin,
                      const Weights& weights) {
  double sum = 0;
  for (std::size_t i = begin; i < tokens.size(); ++i) {
    const std::span<const int> before(tokens.data(), i);
    sum += std::log(Ngram::mixture(weights, Ngram::parts(counts, before, tokens[i], 5)));
  }
  return sum;
}

}  // namespace

TEST_CASE("Shares of n-grams are those counted by hand", "[support]") {
  const NgramCounts counts(abacaba);
  using Shares = std::array<double, 3>;
  const auto shares = [&](const std::vector<int>& before, int token) {
    return counts.shares(before, token);
  };
  CHECK(shares({}, 0) == Shares{4.0 / 7, 4.0 / 7, 4.0 / 7});
  CHECK(shares({0}, 1) == Shares{2.0 / 7, 2.0 / 3, 2.0 / 3});  // 0 is followed by 1, 2, 1
  CHECK(shares({1, 0}, 2) == Shares{1.0 / 7, 1.0 / 3, 1});     // 1 0 is followed by 2 alone
  CHECK(shares({0, 1}, 2) == Shares{1.0 / 7, 0, 0});
  CHECK(shares({2, 2}, 0) == Shares{4.0 / 7, 1, 1});  // 2 2 was never seen
  CHECK(shares({0, 3}, 1) == Shares{2.0 / 7, 2.0 / 7, 2.0 / 7});
}

TEST_CASE("A 3-gram mixes shares with its weights, and its probabilities sum to one", "[support]") {
  const std::vector<int> tokens = text(3000);
  const Ngram model(tokens, 5);
  const NgramCounts counts(tokens);  // of all training tokens
  const Weights& w = model.weights();
  CHECK_THAT(w[0] + w[1] + w[2] + w[3], WithinRel(1.0, forward_relative));
  for (const std::vector<int>& before :
       {std::vector<int>{}, {3}, {1, 4}, {0, 0, 2}, {7, 7}, {2, 7}, {7, 2}}) {
    double sum = 0;
    for (int token = 0; token < 5; ++token) {
      const auto shares = counts.shares(before, token);
      const double expected = w[0] / 5 + w[1] * shares[0] + w[2] * shares[1] + w[3] * shares[2];
      CHECK_THAT(model.probability(before, token), WithinRel(expected, forward_relative));
      sum += model.probability(before, token);
    }
    CHECK_THAT(sum, WithinRel(1.0, forward_relative));
  }
}

TEST_CASE("The mean of nats is that of the tokens behind the first", "[support]") {
  const std::vector<int> tokens = text(200);
  const Ngram model(tokens, 5);
  const std::vector<int> other{4, 1, 3, 0};
  const double expected = -(std::log(model.probability(std::vector<int>{4}, 1)) +
                            std::log(model.probability(std::vector<int>{4, 1}, 3))) /
                          2;
  CHECK_THAT(model.nats_per_token(other, 2), WithinRel(expected, forward_relative));
}

TEST_CASE("The weights are those of greatest likelihood on the held-out tokens", "[support]") {
  const std::vector<int> tokens = text(3000);
  const std::size_t begin = 2700;
  const std::span<const int> all(tokens);
  const NgramCounts counts(all.first(begin));
  const Weights weights = Ngram::fit(counts, tokens, begin, 5);
  CHECK(Ngram(tokens, 5).weights() == weights);
  const double best = log_likelihood(counts, tokens, begin, weights);
  // The likelihood is concave in the weights, so a look around is enough.
  for (std::size_t from = 0; from < weights.size(); ++from) {
    for (std::size_t to = 0; to < weights.size(); ++to) {
      Weights other = weights;
      const double moved = std::min(0.01, weights[from]);
      other[from] -= moved;
      other[to] += moved;
      CHECK(log_likelihood(counts, tokens, begin, other) <= best + 300 * Ngram::tolerance);
    }
  }
}

TEST_CASE("Tokens drawn from one share alone give it all the weight", "[support]") {
  // Held-out tokens: always what two tokens before say, and never the most frequent one.
  std::vector<int> tokens;
  for (int i = 0; i < 900; ++i) tokens.insert(tokens.end(), {0, 1, 2, 0, 2, 1});
  const Weights weights = Ngram(tokens, 3).weights();
  CHECK(weights[3] > 0.999);
}

TEST_CASE("On the shipped text a 3-gram reaches what another implementation does", "[support]") {
  const auto text = scalewise::data::split_tokens(scalewise::data::read_byte_tokens(
      std::string(SCALEWISE_TEST_DIR) + "/../tools/data/austen_persuasion.txt"));
  const Ngram model(text.train, 256);
  // Counted again in Python, with expectation maximization until nothing changes.
  CHECK_THAT(model.nats_per_token(text.validation, text.validation.size() - 1),
             WithinRel(1.8972275680788326, 1e-6));
  CHECK_THAT(model.weights()[3], WithinRel(0.9828212708, 1e-6));
}
