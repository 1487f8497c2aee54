// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Causal attention, token by token, against many simulated networks; takes a minute.

#include <cmath>
#include <cstddef>
#include <vector>

#include "propagation/attention_network.hpp"
#include "scalewise/propagation/token_attention.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::propagation;

namespace {

Attention causal_attention(double d, double length, double scores, double p) {
  return {.width = d,
          .heads = d,
          .length = length,
          .query = std::sqrt(scores) / d,
          .key = std::sqrt(scores) / d,
          .value = 1 / d,
          .output = 1 / d,
          .dropout = p,
          .probability_dropout = p,
          .causal = true};
}

struct Worst {
  double forward = 0, backward = 0;
};

/// The largest errors, in units of what is accepted.
Worst simulate(const Attention& a, const std::vector<Token>& x, const std::vector<Token>& g,
               int networks, double accuracy) {
  const std::size_t L = x.size();
  TokenAverages forward(L);
  TokenAverages backward(L);
  numeric::RandomStream stream(21, "networks");
  for (int i = 0; i < networks; ++i) {
    AttentionNetwork network(a, 2, L, L, stream);
    const Rows in = draw(stream, x, static_cast<std::size_t>(a.width));
    forward.add(network.forward(in, in));
    auto [gradient, memory] = network.backward(draw(stream, g, in.columns));
    add_to(gradient.row(0), 1, memory.row(0), memory.values.size());
    backward.add(gradient);
  }
  const TokenCovariance in = covariance_of(x);
  return {forward.worst(attention_block(in, a), accuracy),
          backward.worst(attention_block_gradient(covariance_of(g), in, a), accuracy)};
}

}  // namespace

TEST_CASE("Causal attention of 64 features against thousands of networks") {
  constexpr std::size_t L = 20;
  struct Case {
    double scores, r, rg, p;
  };
  // First order in 1/d and, where keys are few, second order in S is missing.
  for (const Case& c : {Case{0.2, 0.5, 0.5, 0.1}, Case{0.2, 0.2, 0, 0}, Case{0.2, 0.8, 0.9, 0.3}}) {
    CAPTURE(c.scores, c.r, c.rg, c.p);
    const std::vector<Token> x(L, {std::sqrt(c.r), std::sqrt(1 - c.r)});
    const std::vector<Token> g(L, {std::sqrt(c.rg), std::sqrt(1 - c.rg)});
    const double S = c.scores * (1 - c.r);
    const Worst worst =
        simulate(causal_attention(64, L, c.scores, c.p), x, g, 4000, 1.0 / 64 + S * S / 2);
    CHECK(worst.forward < 1);
    CHECK(worst.backward < 1);
  }
}

TEST_CASE("Causal attention of tokens that differ in variance") {
  // Early tokens larger than late ones, as a causal stack makes them. Keys are taken for all alike,
  // of the average moments, which is first order in how far their variances are apart: what is left
  // is relative to the variance of variances.
  constexpr std::size_t L = 20;
  std::vector<Token> x;
  std::vector<Token> g;
  double mean = 0;
  double square = 0;
  for (std::size_t t = 0; t < L; ++t) {
    const double size = 1 + 0.5 / static_cast<double>(t + 1);
    x.push_back({0.7 * size, 0.7 * size});
    g.push_back({0.5 * size, 0.8 * size});
    mean += size * size / L;
    square += std::pow(size, 4) / L;
  }
  const double spread = square / (mean * mean) - 1;
  const Worst worst = simulate(causal_attention(64, L, 0.1, 0.1), x, g, 4000, 1.0 / 64 + spread);
  CAPTURE(spread);
  CHECK(worst.forward < 1);
  CHECK(worst.backward < 1);
}
