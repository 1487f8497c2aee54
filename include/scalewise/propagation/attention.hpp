// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/linear.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/propagation/reading.hpp"
#include "scalewise/propagation/validity.hpp"

namespace scalewise::propagation {

/// Multi-head attention: what its moments depend on.
/// Units:    query, key, value and output are variances of single weights, score_scale is a
///           multiplier of scores over 1/√head_dim.
struct Attention {
  double width = 0;   // d, features that are read
  double heads = 0;   // heads * head_dim, the input of the output projection
  double length = 0;  // L, tokens
  double query = 0;
  double key = 0;
  double value = 0;
  double output = 0;
  double score_scale = 1;
  double dropout = 0;              // p, after the output projection
  double probability_dropout = 0;  // of attention probabilities
  bool causal = false;             // for token_attention.hpp; the averages here know no masks
  double head_features = 0;        // head_dim, which no formula has: for warnings(); 0 if unknown
};

namespace detail {

/// The symbols of the formulas, for queries of variance s over keys of variance k.
/// Equation: D = (1-r) k, U = d sq sk, W = U s, S = d W D, the variance of one query's scores over the keys
struct Scores {
  Scores(const Attention& a, const SignalMoments& queries, const SignalMoments& keys)
      : D(keys.variance - keys.covariance),
        U(a.width * a.query * a.key * a.score_scale * a.score_scale),
        W(U * queries.variance),
        S(a.width * W * D) {}

  double D, U, W, S;
};

/// The factor by which a query needs more tokens than one with even probabilities for the same accuracy.
inline double tokens_needed(double S) { return (std::max)(1.0, std::exp(S) - 0.5); }

/// (e^S - 1) (1 + 1/2 + … + 1/L)/L, the sum by its expansion, to 1 % from two tokens.
inline double unequal_under_mask(double S, double length) {
  const double sum = std::log(length) + std::numbers::egamma + 1 / (2 * length);
  return (std::exp(S) - 1) * sum / length;
}

/// Moments of dropout(softmax(scores)) times the keys themselves.
inline SignalMoments mix(const SignalMoments& queries, const SignalMoments& keys,
                         const Attention& a, Reading reading) {
  const auto [D, U, W, S] = Scores(a, queries, keys);
  const double c = keys.covariance;
  const double L = a.length;
  const double p = a.probability_dropout;
  const double keep = 1 - p;
  const double r = queries.correlation();
  const double w = W * D * D;
  switch (reading) {
    case Reading::paper_simple:
      return {.variance = c, .covariance = c};
    case Reading::paper_full:
      return {.variance = c + ((L - 1) * w + std::exp(S) * (D + 4 * w) / keep) / L,
              .covariance = c + (D + 2 * w) / L};
    default:
      break;
  }
  return {.variance = c + w + std::exp(S) / L * (D / keep + c * p / keep + w * (4 / keep - 5)),
          .covariance = c + r * w + std::exp(r * S) / L * (D - r * w)};
}

/// The gradient of the keys, which are the values too, from the gradient g of `count` queries.
inline SignalMoments mix_gradient(const SignalMoments& g, double count,
                                  const SignalMoments& queries, const SignalMoments& keys,
                                  const Attention& a, Reading reading) {
  const auto [D, U, W, S] = Scores(a, queries, keys);
  const double L = a.length;
  const double p = a.probability_dropout;
  const double keep = 1 - p;
  const double r = queries.correlation();
  const double ratio = count / L;
  const double others = count - 1;
  const double flat = ratio / L * (g.variance + others * g.covariance);
  switch (reading) {
    case Reading::paper_simple:
      return scaled(ratio * ratio, {0, g.covariance, g.covariance});
    case Reading::paper_full:
      return {.variance = ratio / L * (g.variance / keep + others * g.covariance),
              .covariance = flat};
    default:
      break;
  }
  const double own = (1 + S + p * a.width * W * keys.covariance) / keep;
  return {.variance = ratio / L *
                      (g.variance * std::exp(S) * own +
                       g.covariance * others * std::exp(r * S) * (1 + r * S)),
          .covariance = flat};
}

/// The gradient of the queries.
/// Equation: var = sg (W D² + (e^S/L) S (D + p c)/(1-p))/s, cov = cg W D²/s, c of the keys
/// The second term, of the sample covariance of few keys in many features, is d e^S/L of the first;
/// in the covariance of self-attention it is 1/L of the part that comes through the values.
inline SignalMoments query_gradient(const SignalMoments& g, const SignalMoments& queries,
                                    const SignalMoments& keys, const Attention& a,
                                    Reading reading) {
  if (reading != Reading::corrected) return scaled(0, g);
  // In U for W/s, which a token of variance zero has, too.
  const auto [D, U, W, S] = Scores(a, queries, keys);
  const double p = a.probability_dropout;
  const double sampled =
      std::exp(S) / a.length * a.width * U * D * (D + p * keys.covariance) / (1 - p);
  return {.variance = g.variance * (U * D * D + sampled), .covariance = g.covariance * U * D * D};
}

}  // namespace detail

/// Covariance of two features of one token after attention without values: a sum of tokens keeps their
/// correlation over features.
/// Equation: r_d var y, of inputs with the correlation r_d over features, -1/(d-1) after a LayerNorm
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Table 19.
/// Shapes:   x: moments of the input, covariance over features; attended: of the output
/// Accuracy: exact where r_d is -1/(d-1), with any scores and masks: rows of sum zero stay such rows.
/// Differs:  the table has 0, from features that are uncorrelated.
constexpr double attended_feature_covariance(const SignalMoments& x,
                                             const SignalMoments& attended) {
  return x.correlation() * attended.variance;
}

/// The input of the output projection.
/// Equation: d sv times
///           var = r s + W D² + (e^S/L) (D/(1-p) + r s p/(1-p) + W D² (4/(1-p) - 5)),
///           cov = r s + r W D² + (e^rS/L) (D - r W D²),
///           D = (1-r) s, W = d s sq sk, S = d W D, p the dropout of probabilities
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.8 and Tables 16 to 20: paper_full
///           var = r s + ((L-1) W D² + e^S (D + 4 W D²)/(1-p))/L, cov = r s + (D + 2 W D²)/L;
///           paper_simple both r s.
/// Accuracy: within 3 % of simulation where attention_validity holds: the next term is e^S (2 e^S - 1)/L of D e^S/L.
/// Requires: x of mean zero.
/// Differs:  the paper drops the noise of dropout on what tokens share, and lets e^rS be one.
inline SignalMoments attention_heads(const SignalMoments& x, const Attention& a,
                                     Reading reading = Reading::corrected) {
  return linear(detail::mix(x, x, a, reading), a.width, a.value);
}

/// The gradient that the heads hand to the input x.
/// Equation: h sv times, h = heads * head_dim,
///           var = sg ((e^S/L) (1 + S + p d W r s + S (1 - r + rp))/(1-p) + W D²/s
///                 + (1 - 1/L) rg e^rS (1 + rS)),
///           cov = sg ((1 + (L-1) rg)/L + rg W D²/s)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.8: paper_full
///           var = sg (1 + (L-1) rg (1-p))/(L (1-p)), cov = sg (1 + (L-1) rg)/L; paper_simple cg.
/// Accuracy: where attention_validity holds, the covariance within 3 % of simulation, the variance too for 64 features of
///           tokens and of heads and S up to 1. What is left out falls with both: with S = 0.7, r = 0.3 and L = 128 the
///           variance is 2 % too low for 64 and 64, 9 % for 64 and heads of 8, 12 % for 16 and 16, 24 % for 8 and 8.
/// Differs:  the paper counts the path through the values only and takes the probabilities for
///           constant. Table 17 prints (1-p)² where (1-p) is right.
inline SignalMoments attention_heads_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                              const Attention& a,
                                              Reading reading = Reading::corrected) {
  const SignalMoments all = sum(detail::mix_gradient(gradient, a.length, x, x, a, reading),
                                detail::query_gradient(gradient, x, x, a, reading));
  return linear_gradient(all, a.heads, a.value);
}

/// An attention block: heads, output projection, dropout; no norm and no residual connection.
/// Equation: attention_heads, then h so, then dropout
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), B.1, Tables 16 to 20; paper_simple: Table 2,
///           var = d² so sv r s/(1-p), corr = 1-p.
/// Accuracy: within 3.5 % of simulation where attention_validity holds.
inline SignalMoments attention_block(const SignalMoments& x, const Attention& a,
                                     Reading reading = Reading::corrected) {
  return dropout(linear(attention_heads(x, a, reading), a.heads, a.output), a.dropout);
}

/// The gradient that an attention block hands to its input x.
/// Equation: dropout, then d so, then attention_heads_gradient
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), B.1: paper_simple, Table 2,
///           var = d² so sv rg sg/(1-p), corr = 1-p; paper_full, Table 20,
///           var = d² so sv sg (1 + (L-1) rg (1-p))/(L (1-p)²), cov = d² so sv sg (1 + (L-1) rg)/L.
/// Accuracy: as attention_heads_gradient.
/// Differs:  dropout lowers the correlation of the gradient and averaging over queries keeps the
///           covariance only, so that Table 2's 1/(1-p) and corr are wrong.
inline SignalMoments attention_block_gradient(const SignalMoments& gradient, const SignalMoments& x,
                                              const Attention& a,
                                              Reading reading = Reading::corrected) {
  const double p = a.dropout;
  const double L = a.length;
  const double power = a.width * a.output * a.heads * a.value;
  if (reading == Reading::paper_simple) {
    return {.variance = power * gradient.covariance / (1 - p),
            .covariance = power * gradient.covariance};
  }
  if (reading == Reading::paper_full) {
    const double variance =
        (gradient.variance + (L - 1) * (1 - p) * gradient.covariance) / (L * (1 - p) * (1 - p));
    const double covariance = (gradient.variance + (L - 1) * gradient.covariance) / L;
    return scaled(power, {.variance = variance, .covariance = covariance});
  }
  const SignalMoments projected = linear_gradient(dropout_gradient(gradient, p), a.width, a.output);
  return attention_heads_gradient(projected, x, a, reading);
}

/// How unequal the attention probabilities are.
/// Equation: e^S max(1, e^S - 1/2)/L: the sum of their squares, and half of the next term; under a causal mask
///           at least (e^S - 1) (1 + 1/2 + … + 1/L)/L, of the mean of one over a query's number of keys
/// Accuracy: the formulas hold up to 0.02.
inline Validity attention_validity(const SignalMoments& x, const Attention& a) {
  const double S = detail::Scores(a, x, x).S;
  const double masked = a.causal ? detail::unequal_under_mask(S, a.length) : 0;
  const double all = std::exp(S) * detail::tokens_needed(S) / a.length;
  if (masked > all) return {"(e^S - 1) (1 + 1/2 + ... + 1/L)/L", masked, 0.02};
  return {"e^S max(1, e^S - 1/2)/L", all, 0.02};
}

}  // namespace scalewise::propagation
