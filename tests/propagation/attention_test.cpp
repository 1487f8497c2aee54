// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// Attention under a causal mask, token by token, and cross attention against simulated networks.

#include "scalewise/propagation/attention.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "propagation/attention_network.hpp"
#include "propagation/quadrature.hpp"
#include "scalewise/propagation/cross_attention.hpp"
#include "scalewise/propagation/cross_entropy.hpp"
#include "scalewise/propagation/token_attention.hpp"
#include "support/catch.hpp"

using namespace scalewise;
using namespace scalewise::test;
using namespace scalewise::propagation;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

// Weights that make a block of unit power, d² so sv = 1, with d² sq sk = scores.
Attention unit_attention(double d, double length, double scores, double p) {
  return {.width = d,
          .heads = d,
          .length = length,
          .query = 2 * std::sqrt(scores) / d,  // what counts is the product of the two
          .key = std::sqrt(scores) / d / 2,
          .value = 0.5 / d,
          .output = 2 / d,
          .dropout = p,
          .probability_dropout = p};
}

std::vector<Token> alike(std::size_t tokens, double variance, double r) {
  return std::vector<Token>(tokens, {std::sqrt(variance * r), std::sqrt(variance * (1 - r))});
}

struct Simulated {
  TokenAverages forward, backward;
};

Simulated simulate(const Attention& a, std::size_t heads, const std::vector<Token>& x,
                   const std::vector<Token>& g, int networks) {
  const std::size_t L = x.size();
  Simulated s{TokenAverages(L), TokenAverages(L)};
  numeric::RandomStream stream(3, "attention");
  for (int i = 0; i < networks; ++i) {
    AttentionNetwork network(a, heads, L, L, stream);
    const Rows in = draw(stream, x, static_cast<std::size_t>(a.width));
    s.forward.add(network.forward(in, in));
    auto [gradient, memory] = network.backward(draw(stream, g, in.columns));
    for (std::size_t j = 0; j < memory.values.size(); ++j) gradient.values[j] += memory.values[j];
    s.backward.add(gradient);
  }
  return s;
}

double largest_difference(const TokenCovariance& a, const TokenCovariance& b) {
  double most = 0;
  for (std::size_t t = 0; t < a.tokens(); ++t) {
    for (std::size_t u = 0; u < a.tokens(); ++u) {
      most = std::max(most, std::abs(a.at(t, u) - b.at(t, u)));
    }
  }
  return most;
}

}  // namespace

TEST_CASE("The simulated network's gradient is that of its output") {
  numeric::RandomStream stream(1, "check");
  for (const bool causal : {false, true}) {
    Attention a = unit_attention(6, 4, 3, 0.2);
    a.causal = causal;
    AttentionNetwork network(a, 2, 4, 4, stream);
    const Rows x = normals(stream, 4, 6, 1);
    const Rows memory = normals(stream, 4, 6, 1);
    const Rows g = normals(stream, 4, 6, 1);
    const Rows v = normals(stream, 4, 6, 1);
    const double h = 1e-5;
    const auto value = [&](double along_x, double along_memory) {
      Rows in = x;
      Rows read = memory;
      add_to(in.row(0), along_x, v.row(0), v.values.size());
      add_to(read.row(0), along_memory, v.row(0), v.values.size());
      return dot(network.forward(in, read).row(0), g.row(0), g.values.size());
    };
    const double of_x = (value(h, 0) - value(-h, 0)) / (2 * h);
    const double of_memory = (value(0, h) - value(0, -h)) / (2 * h);
    network.forward(x, memory);
    const auto gradients = network.backward(g);
    // Truncation h² and rounding epsilon/h are both below 1e-9 here.
    CHECK_THAT(dot(gradients.x.row(0), v.row(0), v.values.size()), WithinAbs(of_x, 1e-8));
    CHECK_THAT(dot(gradients.memory.row(0), v.row(0), v.values.size()), WithinAbs(of_memory, 1e-8));
  }
}

// Formulas are first order in 1/d (d = 32: 3 %) and in S/n. A mask leaves few keys to the first
// tokens, where the second order in S is missing: S²/2, at most 0.5 % for S = 0.1 and 3 % for 0.25.
TEST_CASE("Causal attention against simulated networks, token by token") {
  constexpr std::size_t L = 12;
  struct Case {
    double scores, r, rg, p;
  };
  for (const Case& c : {Case{0.2, 0.5, 0.4, 0.1}, Case{0.3, 0.2, 0, 0}}) {
    CAPTURE(c.scores, c.r, c.rg, c.p);
    Attention a = unit_attention(32, L, c.scores, c.p);
    a.causal = true;
    const std::vector<Token> x = alike(L, 1, c.r);
    const std::vector<Token> g = alike(L, 1.5, c.rg);
    Simulated s = simulate(a, 2, x, g, 500);
    const double S = c.scores * (1 - c.r);
    const double accuracy = 1.0 / 32 + S * S / 2;
    CHECK(s.forward.worst(attention_block(covariance_of(x), a), accuracy) < 1);
    CHECK(s.backward.worst(attention_block_gradient(covariance_of(g), covariance_of(x), a),
                           accuracy) < 1);
  }
}

TEST_CASE("Cross attention against simulated networks") {
  constexpr std::size_t queries = 6;
  constexpr std::size_t keys = 24;
  for (const double p : {0.0, 0.2}) {
    CAPTURE(p);
    const double s = 0.8;
    const double r = 0.6;
    const double k = 1.2;
    const double rk = 0.3;
    const double rg = 0.5;
    CrossAttention c{unit_attention(32, keys, 0.3, p), queries, correlated(k, rk)};
    Average forward, forward_pair, gradient, gradient_pair, memory, memory_pair;
    const auto add = [](Average& own, Average& pair, const Rows& y) {
      double square = 0;
      double product = 0;
      const auto n = static_cast<double>(y.rows);
      for (std::size_t t = 0; t < y.rows; ++t) {
        for (std::size_t u = 0; u < y.rows; ++u) {
          const double both = dot(y.row(t), y.row(u), y.columns) / static_cast<double>(y.columns);
          (t == u ? square : product) += both / n / (t == u ? 1 : n - 1);
        }
      }
      own.add(square);
      pair.add(product);
    };
    numeric::RandomStream stream(9, "cross");
    for (int i = 0; i < 500; ++i) {
      AttentionNetwork network(c.attention, 2, queries, keys, stream);
      const Rows x = draw(stream, alike(queries, s, r), 32);
      const Rows read = draw(stream, alike(keys, k, rk), 32);
      add(forward, forward_pair, network.forward(x, read));
      const auto gradients = network.backward(draw(stream, alike(queries, 1.5, rg), 32));
      add(gradient, gradient_pair, gradients.x);
      add(memory, memory_pair, gradients.memory);
    }
    const double S = 0.3 * s * k * (1 - rk);
    const double accuracy = 1.0 / 32 + S / keys + S * S / 2;
    const SignalMoments x = correlated(s, r);
    const SignalMoments g = correlated(1.5, rg);
    const SignalMoments y = cross_attention_block(x, c);
    CHECK(agrees(forward, y.variance, accuracy));
    CHECK(agrees(forward_pair, y.covariance, accuracy));
    const SignalMoments back = cross_attention_gradient(g, x, c);
    CHECK(agrees(gradient, back.variance, accuracy));
    CHECK(agrees(gradient_pair, back.covariance, accuracy));
    const SignalMoments kept = memory_gradient(g, x, c);
    CHECK(agrees(memory, kept.variance, accuracy));
    CHECK(agrees(memory_pair, kept.covariance, accuracy));
    // Token by token, with tokens that are all alike.
    const TokenCovariance xs(queries, x);
    const TokenCovariance gs(queries, g);
    CHECK(largest_difference(cross_attention_block(xs, c), {queries, y}) < 1e-13);
    CHECK(largest_difference(cross_attention_gradient(gs, xs, c), {queries, back}) < 1e-13);
    const SignalMoments by_token = memory_gradient(gs, xs, c);
    CHECK_THAT(by_token.variance, WithinRel(kept.variance, 1e-12));
    CHECK_THAT(by_token.covariance, WithinRel(kept.covariance, 1e-12));
  }
}

TEST_CASE("The first token of a causal block reads itself alone") {
  for (const std::size_t L : {std::size_t{1}, std::size_t{7}}) {
    CAPTURE(L);
    const double p = 0.2;
    Attention a = unit_attention(64, static_cast<double>(L), 2, p);
    a.causal = true;
    const TokenCovariance x(L, correlated(1.3, 0.4));
    // One probability of one, kept or not, then dropout of what the block returns.
    const TokenCovariance y = attention_block(x, a);
    CHECK_THAT(y.at(0, 0), WithinRel(1.3 / (1 - p) / (1 - p), 1e-13));
    if (L > 1) continue;
    const TokenCovariance g = attention_block_gradient({L, correlated(0.7, 0)}, x, a);
    CHECK_THAT(g.at(0, 0), WithinRel(0.7 / (1 - p) / (1 - p), 1e-13));
  }
}

TEST_CASE("The second token of a causal block divides itself between two keys") {
  // Scores differ by a normal number of variance 2S, so that the squares of both probabilities are
  // known; the formula has them to first order in S.
  const GaussLegendre rule = gauss_legendre(60);
  for (const double S : {0.05, 0.2, 0.4}) {
    CAPTURE(S);
    const double squares = integral(rule, -12, 12, [&](double z) {
      const double p = 1 / (1 + std::exp(std::sqrt(2 * S) * z));
      const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
      return density * (p * p + (1 - p) * (1 - p));
    });
    const double r = 0.4;
    Attention a = unit_attention(1e9, 2, S / (1 - r), 0);  // so wide that W D² is nothing
    a.causal = true;
    const TokenCovariance y = attention_block({2, correlated(1, r)}, a);
    CHECK_THAT(y.at(1, 1), WithinAbs(r + (1 - r) * squares, S * S / 3));
    CHECK_THAT(y.at(1, 0), WithinRel(r + (1 - r) / 2, 1e-8));
  }
}

TEST_CASE("Causal attention of infinite width, where only scores are random") {
  // In the limit scores a_t of a query are normal and independent over keys, as are the products γ_t
  // of its gradient with what keys have of their own; over queries both are correlated, like x and
  // g. Given the probabilities, everything else is an average that is known.
  constexpr std::size_t L = 6;
  const double S = 0.02;
  const double r = 0.6;
  const double rg = 0.7;
  const double D = 1 - r;
  Attention a = unit_attention(1e9, L, S / D, 0);
  a.causal = true;
  const TokenCovariance x(L, correlated(1, r));
  const TokenCovariance g(L, correlated(1, rg));
  std::vector<Average> forward(L * L);
  std::vector<Average> backward(L * L);
  numeric::RandomStream stream(2, "scores");
  for (int round = 0; round < 8000; ++round) {
    double shared[L];
    double own[L][L];
    for (double& v : shared) v = std::sqrt(r * S) * stream.normal();
    for (auto& row : own) {
      for (double& v : row) v = std::sqrt((1 - r) * S) * stream.normal();
    }
    double products[L][L] = {};
    double sums[L][L] = {};
    for (const double sign : {1.0, -1.0}) {  // odd orders of the scores cancel
      double p[L][L] = {};
      for (std::size_t t = 0; t < L; ++t) {
        double total = 0;
        for (std::size_t k = 0; k <= t; ++k) {
          p[t][k] = std::exp(sign * (shared[k] + own[t][k]));
          total += p[t][k];
        }
        for (std::size_t k = 0; k <= t; ++k) p[t][k] /= total;
      }
      for (std::size_t t = 0; t < L; ++t) {
        for (std::size_t u = 0; u < L; ++u) {
          const double both = dot(p[t], p[u], L);
          products[t][u] += both / 2;
          const double of_x = t == u ? 1 : r;
          const double of_g = (t == u ? 1 : rg) / 2;
          for (std::size_t k = 0; k <= t; ++k) {
            // Cov(γ_t,k - Σ p_t γ_t, γ_u,l - Σ p_u γ_u)
            const auto centered = [&](std::size_t l) {
              return (k == l ? 1 : 0) - p[u][k] - p[t][l] + both;
            };
            for (std::size_t l = 0; l <= u; ++l) {
              sums[k][l] +=
                  of_g * p[t][k] * p[u][l] * (1 + of_x * S * centered(l));  // values, keys
            }
            if (k <= u) sums[t][u] += of_g * S * D * p[t][k] * p[u][k] * centered(k);  // queries
          }
        }
      }
    }
    for (std::size_t i = 0; i < L * L; ++i) {
      forward[i].add(r + D * products[i / L][i % L]);
      backward[i].add(sums[i / L][i % L]);
    }
  }
  const TokenCovariance y = attention_block(x, a);
  const TokenCovariance back = attention_block_gradient(g, x, a);
  for (std::size_t t = 0; t < L; ++t) {
    for (std::size_t u = 0; u <= t; ++u) {
      CAPTURE(t, u);
      // The missing terms are of second order in S.
      CHECK_THAT(y.at(t, u), WithinAbs(forward[t * L + u].mean(),
                                       5 * forward[t * L + u].error() + S * S / 2 * y.at(t, t)));
      CHECK_THAT(back.at(t, u), WithinAbs(backward[t * L + u].mean(),
                                          5 * backward[t * L + u].error() +
                                              S * S * std::sqrt(back.at(t, t) * back.at(u, u))));
    }
  }
}

TEST_CASE("The range of attention's formulas is reported") {
  const Attention a = unit_attention(64, 100, 1, 0);
  const Validity inside = attention_validity(correlated(1, 0.5), a);
  CHECK(inside.holds());
  CHECK_THAT(inside.value, WithinRel(std::exp(0.5) * (std::exp(0.5) - 0.5) / 100, 1e-13));
  CHECK_FALSE(attention_validity(correlated(2, 0), a).holds());
  CHECK_THAT(attention_validity(correlated(1, 0.9), a).value,
             WithinRel(std::exp(0.1) / 100, 1e-13));
}

TEST_CASE("Where the formulas of attention hold, they have the sum of squared probabilities") {
  // Of uncorrelated tokens of many features the output's variance is that sum.
  for (const double S : {0.1, 0.4, 1.0, 2.0, 2.9}) {
    Attention a = unit_attention(1e9, 1, S, 0);
    a.length = std::ceil(attention_validity(correlated(1, 0), a).value / 0.02);
    INFO(S << ", " << a.length);
    CHECK(attention_validity(correlated(1, 0), a).holds());
    const double squares = squared_probabilities(std::lround(a.length), S);
    CHECK_THAT(attention_block(correlated(1, 0), a).variance, WithinRel(squares, 0.031));
    a.length = std::ceil(std::exp(S) / 0.02);
    const double fewer = squared_probabilities(std::lround(a.length), S);
    CHECK((attention_block(correlated(1, 0), a).variance > 1.04 * fewer) == (S >= 1));
  }
}

TEST_CASE("Under a mask too, where queries read few keys") {
  for (const double S : {0.1, 0.4, 1.0}) {
    Attention a = unit_attention(1e9, 2, S, 0);
    a.causal = true;
    while (!attention_validity(correlated(1, 0), a).holds()) a.length = std::ceil(1.1 * a.length);
    const long L = std::lround(a.length);
    double squares = 0;
    for (long n = 1; n <= L; ++n) squares += squared_probabilities(n, S) / static_cast<double>(L);
    INFO(S << ", " << L);
    const TokenCovariance x(static_cast<std::size_t>(L), correlated(1, 0));
    CHECK_THAT(attention_block(x, a).mean().variance, WithinRel(squares, 0.045));
  }
  // Mean variances of gradients of 40 and 80 simulated blocks in NumPy, with standard errors of 0.8 and 0.7 %.
  struct Row {
    double width, heads, head_features, length, key, gradient;
  };
  for (const Row& row : {Row{512, 4, 128, 75, 0.39, 0.12476}, Row{256, 4, 64, 64, 0.4, 0.14325}}) {
    const double one = 1 / row.width;
    const Attention a{.width = row.width,
                      .heads = row.heads * row.head_features,
                      .length = row.length,
                      .query = one,
                      .key = row.key * one,
                      .value = one,
                      .output = one,
                      .causal = true};
    const TokenCovariance x(static_cast<std::size_t>(row.length), correlated(1, 0));
    CHECK_THAT(attention_block_gradient(x, x, a).mean().variance, WithinRel(row.gradient, 0.05));
  }
}

TEST_CASE("A token of variance zero gets the gradient of one that nearly is") {
  // Its query is zero, but not what its scores do to the loss.
  const auto gradient_at = [](double variance, double correlation) {
    TokenCovariance x(4, correlated(1, 0.3));
    x.at(1, 1) = variance;
    for (const std::size_t t : {0U, 2U, 3U}) {
      x.at(1, t) = x.at(t, 1) = correlation * std::sqrt(variance);
    }
    return attention_block_gradient({4, correlated(1, 0.2)}, x, unit_attention(64, 4, 0.3, 0.1));
  };
  CHECK(largest_difference(gradient_at(0, 0.3), gradient_at(1e-24, 0.3)) < 1e-9);
  CHECK(gradient_at(0, 0.3).at(1, 1) > 0);
  const Attention a = unit_attention(64, 100, 1, 0.1);
  const SignalMoments zero = attention_block_gradient(correlated(1, 0.2), correlated(0, 0), a);
  CHECK_THAT(attention_block_gradient(correlated(1, 0.2), correlated(1e-24, 0), a).variance,
             WithinRel(zero.variance, 1e-9));
}
