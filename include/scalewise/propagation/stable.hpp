// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/activation.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::propagation {

/// The factors by which a layer of ReLU blocks multiplies variances, for long sequences.
/// Equation: attention C1 = d² so sv/(1-p), mlp C2 = d d_ff s1 s2/2 /(1-p), score d² sq sk
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix F.
struct LayerGains {
  double attention = 0;
  double mlp = 0;
  double score = 1;
  double dropout = 0.1;
};

/// The correlations that deep stacks settle at.
struct StableCorrelations {
  double forward = 0;
  double gradient = 0;
};

namespace detail {

/// The limit of x <- map(x).
inline double fixed_point(const auto& map) {
  double x = 0.5;
  for (int i = 0; i < 100'000; ++i) {
    const double next = map(x);
    if (std::abs(next - x) < 1e-16) return next;
    x = next;
  }
  return x;
}

/// The correlation before the MLP of a post-norm layer, given r before its attention.
inline double after_attention(const LayerGains& g, double r) {
  return (r + g.attention * r * (1 - g.dropout)) / (1 + g.attention * r);
}

/// The gradient's correlation before the MLP.
inline double into_attention(const LayerGains& g, double slope, double rg) {
  return (rg + g.mlp * (1 - g.dropout) * slope * rg) / (1 + g.mlp);
}

}  // namespace detail

/// The correlation that an MLP with dropout alone settles at.
/// Equation: r = (1-p) F(r)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), 3.4 and Figure 7.
/// Units:    a correlation
inline double mlp_stable_correlation(double dropout, Reading reading = Reading::corrected) {
  return detail::fixed_point([&](double r) { return (1 - dropout) * relu_product(r, reading); });
}

/// The paper's stable correlations of a layer.
/// Equation: rx (C1 + C2) = C1 (1-p) + C2 (1-p) F(rx);
///           rg (C1 + C2) = C1 (1-p) + C2 (1-p) H(rx) rg
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), appendix F; paper_simple with the polynomial for F.
/// Differs:  it weights attention by C1, although its output has the variance C1 rx, and its gradient
///           leaves out queries and keys: pre_norm_correlation and post_norm_correlations do not.
inline StableCorrelations paper_stable_correlations(const LayerGains& g, Reading reading) {
  const double keep = 1 - g.dropout;
  const double both = g.attention + g.mlp;
  StableCorrelations stable;
  stable.forward = detail::fixed_point([&](double r) {
    return (g.attention * keep + g.mlp * keep * relu_product(r, reading)) / both;
  });
  stable.gradient = g.attention * keep / (both - g.mlp * keep * relu_slope_product(stable.forward));
  return stable;
}

/// The correlation of a deep pre-norm stack.
/// Equation: r = (C1 r (1-p) + C2 (1-p) F(r))/(C1 r + C2)
/// Source:   derived; Kedia et al. 2024 (arXiv:2403.09635), appendix F, with the right weights.
/// Units:    a correlation
/// Accuracy: reached like 1/n, n the layer.
inline double pre_norm_correlation(const LayerGains& g) {
  const double keep = 1 - g.dropout;
  return detail::fixed_point([&](double r) {
    return (g.attention * r * keep + g.mlp * keep * relu_product(r)) / (g.attention * r + g.mlp);
  });
}

/// The correlations of a deep post-norm stack.
struct PostNormCorrelations {
  double attention_input = 0;
  double mlp_input = 0;
  double gradient = 0;            // between layers
  double attention_gradient = 0;  // after the attention block
};

/// The correlations that a deep post-norm stack converges to.
/// Equation: y = (r + C1 r (1-p))/(1 + C1 r), r = (y + C2 (1-p) F(y))/(1 + C2);
///           gradient: y = rg (1 + C2 (1-p) H)/(1 + C2), rg = (y + C1 (1-p) y)/(1 + C1 (1-p) b y),
///           b = e^rS (1 + rS), S = (1-r) d² sq sk; paper_full: (y + C1 (1-p) y)/(1 + C1 y)
/// Source:   derived from Kedia et al. 2024 (arXiv:2403.09635), appendix F.
/// Differs:  the paper's gradient leaves out queries and keys, so that it settles at 0.87.
inline PostNormCorrelations post_norm_correlations(const LayerGains& g,
                                                   Reading reading = Reading::corrected) {
  const double keep = 1 - g.dropout;
  PostNormCorrelations stable;
  const double r = detail::fixed_point([&](double x) {
    const double y = detail::after_attention(g, x);
    return (y + g.mlp * keep * relu_product(y)) / (1 + g.mlp);
  });
  stable.attention_input = r;
  stable.mlp_input = detail::after_attention(g, r);
  const double S = g.score * (1 - r);
  const double boost = reading == Reading::corrected ? keep * std::exp(r * S) * (1 + r * S) : 1;
  const double slope = relu_slope_product(stable.mlp_input);
  stable.gradient = detail::fixed_point([&](double rg) {
    const double y = detail::into_attention(g, slope, rg);
    return (y + g.attention * keep * y) / (1 + g.attention * boost * y);
  });
  stable.attention_gradient = detail::into_attention(g, slope, stable.gradient);
  return stable;
}

/// The factor per layer on the gradient's variance of a deep post-norm stack, towards the input.
/// Equation: (1 + C1 (1-p)) (1 + C2 (1-p) H(y))/((1 + C1 r)(1 + C2)), r and y the correlations
///           before attention and MLP
/// Source:   derived, from the covariance, so that it depends on no rg; Kedia et al. 2024
///           (arXiv:2403.09635), E.2, has (1 + C1 rg)/(1 + C1 rx), which is the same for the rg
///           after the attention block.
/// Units:    a factor on a variance, per layer
inline double post_norm_rate(const LayerGains& g) {
  const double keep = 1 - g.dropout;
  const PostNormCorrelations stable = post_norm_correlations(g);
  return (1 + g.attention * keep) * (1 + g.mlp * keep * relu_slope_product(stable.mlp_input)) /
         ((1 + g.attention * stable.attention_input) * (1 + g.mlp));
}

/// The exponent a of (N/n)^a, by which the gradient's covariance grows towards layer n of a deep
/// pre-norm stack of N.
/// Equation: a = (C1 (1-p) + C2 (1-p) H(r))/(C1 r + C2)
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), E.1, from the covariance.
/// Units:    an exponent of the depth
/// Accuracy: of the variance too where the loss' gradient is correlated; otherwise it grows like
///           (N/n)^(C2/(C1 r + C2)) until the covariance takes over.
inline double pre_norm_exponent(const LayerGains& g) {
  const double keep = 1 - g.dropout;
  const double r = pre_norm_correlation(g);
  return (g.attention * keep + g.mlp * keep * relu_slope_product(r)) / (g.attention * r + g.mlp);
}

}  // namespace scalewise::propagation
