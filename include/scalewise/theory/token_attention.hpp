// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "scalewise/theory/attention.hpp"
#include "scalewise/theory/cross_attention.hpp"
#include "scalewise/theory/token_covariance.hpp"

namespace scalewise::theory {

namespace detail {

/// entry(t, u) of every pair, once.
inline TokenCovariance by_pairs(std::size_t tokens, const auto& entry) {
  TokenCovariance y(tokens);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t u = 0; u <= t; ++u) y.at(t, u) = y.at(u, t) = entry(t, u);
  }
  return y;
}

/// The keys that each query of self-attention reads, 0 … last(t), and their average moments.
struct Keys {
  Keys(const TokenCovariance& x, const Attention& a) : causal(a.causal), tokens(x.tokens()) {
    const TokenCovariance corner = corner_sums(x);
    double own = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      own += x.at(t, t);
      const auto n = static_cast<double>(t + 1);
      const double variance = own / n;
      const double covariance = t > 0 ? (corner.at(t, t) - own) / (n * (n - 1)) : 0;
      moments.push_back({.variance = variance, .covariance = t > 0 ? covariance : variance});
    }
    if (!causal) moments.assign(tokens, moments.back());
  }

  std::size_t last(std::size_t t) const { return causal ? t : tokens - 1; }
  double count(std::size_t t) const { return static_cast<double>(last(t) + 1); }

  /// S(t, u) = Σ x(s, v) over s <= t, v <= u
  static TokenCovariance corner_sums(const TokenCovariance& x) {
    TokenCovariance sums(x.tokens());
    for (std::size_t t = 0; t < x.tokens(); ++t) {
      double row = 0;
      for (std::size_t u = 0; u < x.tokens(); ++u) {
        row += x.at(t, u);
        sums.at(t, u) = row + (t > 0 ? sums.at(t - 1, u) : 0);
      }
    }
    return sums;
  }

  /// For each key pair (s, v), the sum of y over the queries that read s and v.
  TokenCovariance readers_sums(const TokenCovariance& y) const {
    TokenCovariance sums(tokens);
    for (std::size_t t = tokens; t-- > 0;) {
      double row = 0;
      for (std::size_t u = tokens; u-- > 0;) {
        row += y.at(t, u);
        sums.at(t, u) = row + (t + 1 < tokens ? sums.at(t + 1, u) : 0);
      }
    }
    if (causal) return sums;
    return {tokens, {.variance = sums.at(0, 0), .covariance = sums.at(0, 0)}};
  }

  bool causal;
  std::size_t tokens;
  std::vector<Moments> moments;  // of the keys of query t
};

/// The moments of one query of variance s over keys of moments k.
inline Scores scores_of(const Attention& a, double query_variance, const Moments& keys) {
  return {a, {.variance = query_variance}, keys};
}

}  // namespace detail

/// Self-attention block, token by token: attention_block for queries that read different keys.
/// Equation: with n_t keys of query t, A the flat average of x over the keys of t and u,
///           var_t = A_tt + W D² + (1/n_t) ((e^S/(1-p) - 1) D + e^S c p/(1-p)
///                   + e^S W D² (4/(1-p) - 5)),
///           cov_tu = A_tu + r_tu W D² + (1/max(n_t, n_u)) ((e^(r_tu S) - 1) D - e^(r_tu S) r_tu W D²),
///           D, c, W, S of the keys of t (of the smaller set for a pair), times the weights
/// Source:   derived, as attention_block, which it is for keys that are all alike.
/// Shapes:   x (L, L)
/// Accuracy: as attention_block.
inline TokenCovariance attention_block(const TokenCovariance& x, const Attention& a) {
  const detail::Keys keys(x, a);
  const TokenCovariance corner = detail::Keys::corner_sums(x);
  const std::size_t L = x.tokens();
  const double keep = 1 - a.probability_dropout;
  const double power = a.width * a.value * a.heads * a.output;
  TokenCovariance y(L);
  for (std::size_t t = 0; t < L; ++t) {
    const double n = keys.count(t);
    const Moments& k = keys.moments[t];
    const auto [D, W, S] = detail::scores_of(a, x.at(t, t), k);
    const double w = n > 1 ? W * D * D : 0;  // one key leaves nothing to weigh
    const double e = std::exp(S);
    const double flat = corner.at(keys.last(t), keys.last(t)) / (n * n);
    const double noise =
        (e / keep - 1) * D + e * k.covariance * (1 - keep) / keep + e * w * (4 / keep - 5);
    y.at(t, t) = power * (flat + w + noise / n) / (1 - a.dropout);
    for (std::size_t u = 0; u < t; ++u) {  // reads no more than t
      const auto [Du, Wu, Su] = detail::scores_of(a, x.at(u, u), keys.moments[u]);
      const double m = keys.count(u);
      const double r = x.at(t, u) / std::sqrt(x.at(t, t) * x.at(u, u));
      const double v = m > 1 ? r * std::sqrt(W * Wu) * D * Du : 0;
      const double er = std::exp(r * std::sqrt(S * Su));
      const double cov = corner.at(keys.last(t), keys.last(u)) / (n * m) + v +
                         ((er - 1) * Du - er * v) / std::max(n, m);
      y.at(t, u) = y.at(u, t) = power * cov;
    }
  }
  return y;
}

/// The gradient that the block hands to its input x.
/// Equation: with g the gradient behind the values, b_tu = e^(r_tu S) (1 + r_tu S),
///           var_s = Σ_t g_tt (e^S/n_t²) own_t + Σ_{t≠u} b_tu g_tu/(n_t n_u) + g_ss W D²/s,
///           cov_sv = Σ_tu g_tu/(n_t n_u) + g_sv W D²/s, sums over the queries that read s (and v),
///           own_t = (1 + S + p d W c + S (1 - r + rp))/(1-p)
/// Source:   derived, as attention_block_gradient.
/// Accuracy: as attention_block_gradient.
inline TokenCovariance attention_block_gradient(const TokenCovariance& gradient,
                                                const TokenCovariance& x, const Attention& a) {
  const detail::Keys keys(x, a);
  const std::size_t L = x.tokens();
  const double p = a.probability_dropout;
  const double power = a.width * a.value * a.heads * a.output;
  TokenCovariance flat(L);     // g_tu/(n_t n_u)
  TokenCovariance boosted(L);  // the same as variances feel it
  TokenCovariance queries(L);  // what comes back to queries
  for (std::size_t t = 0; t < L; ++t) {
    const double n = keys.count(t);
    const Moments& k = keys.moments[t];
    const auto [D, W, S] = detail::scores_of(a, x.at(t, t), k);
    const double r = k.correlation();
    const double own =
        n > 1 ? (1 + S + p * a.width * W * k.covariance + S * (1 - r + r * p)) / (1 - p)
              : 1 / (1 - p);
    const double g = gradient.at(t, t) / (1 - a.dropout);
    flat.at(t, t) = g / (n * n);
    boosted.at(t, t) = g * std::exp(S) * own / (n * n);
    queries.at(t, t) = n > 1 ? g * W * D * D / x.at(t, t) : 0;
    for (std::size_t u = 0; u < t; ++u) {
      const auto [Du, Wu, Su] = detail::scores_of(a, x.at(u, u), keys.moments[u]);
      const double m = keys.count(u);
      const double both = std::sqrt(x.at(t, t) * x.at(u, u));
      const double rs = x.at(t, u) / both * std::sqrt(S * Su);
      const double share = gradient.at(t, u) / (n * m);
      flat.at(t, u) = flat.at(u, t) = share;
      boosted.at(t, u) = boosted.at(u, t) = share * std::exp(rs) * (1 + rs);
      queries.at(t, u) = queries.at(u, t) =
          m > 1 ? gradient.at(t, u) * std::sqrt(W * Wu) * D * Du / both : 0;
    }
  }
  TokenCovariance y = keys.readers_sums(flat);
  const TokenCovariance variances = keys.readers_sums(boosted);
  for (std::size_t t = 0; t < L; ++t) {
    for (std::size_t u = 0; u < L; ++u) {
      const double values = t == u ? variances.at(t, t) : y.at(t, u);
      y.at(t, u) = power * (values + queries.at(t, u));
    }
  }
  return y;
}

/// Cross-attention block, token by token of the decoder; the memory's tokens are all alike.
/// Equation: cross_attention_block with r_tu in place of r
/// Source:   derived, as cross_attention_block.
inline TokenCovariance cross_attention_block(const TokenCovariance& x, const CrossAttention& c) {
  return detail::by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
    const double variance = std::sqrt(x.at(t, t) * x.at(u, u));
    const Moments y = cross_attention_block({0, variance, x.at(t, u)}, c);
    return t == u ? y.variance : y.covariance;
  });
}

/// The gradient that it hands to the decoder's stream.
inline TokenCovariance cross_attention_gradient(const TokenCovariance& gradient,
                                                const TokenCovariance& x, const CrossAttention& c) {
  return detail::by_pairs(x.tokens(), [&](std::size_t t, std::size_t u) {
    const double variance = std::sqrt(x.at(t, t) * x.at(u, u));
    const double g = gradient.at(t, u);
    const Moments y = cross_attention_gradient({0, g, g}, {0, variance, x.at(t, u)}, c);
    return t == u ? y.variance : y.covariance;
  });
}

/// The gradient that it hands to the memory.
/// Equation: memory_gradient of one query, summed, and of two, summed over pairs
inline Moments memory_gradient(const TokenCovariance& gradient, const TokenCovariance& x,
                               CrossAttention c) {
  Moments total{0, 0, 0};
  for (std::size_t t = 0; t < x.tokens(); ++t) {
    for (std::size_t u = 0; u <= t; ++u) {
      const double variance = std::sqrt(x.at(t, t) * x.at(u, u));
      const double g = gradient.at(t, u);
      c.queries = t == u ? 1 : 2;
      const Moments part = t == u ? Moments{0, g, 0} : Moments{0, 0, g};
      total = sum(total, memory_gradient(part, {0, variance, x.at(t, u)}, c));
    }
  }
  return total;
}

}  // namespace scalewise::theory
