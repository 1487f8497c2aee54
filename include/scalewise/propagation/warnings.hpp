// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "scalewise/propagation/layers.hpp"
#include "scalewise/propagation/profile.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::propagation {

/// A reason not to train a model as it is, or not to trust its profile.
struct Warning {
  bool serious = true;  // of the model; otherwise of the accuracy of its profile
  std::string text;
};

/// From where on a profile is worth a warning.
struct WarningLimits {
  double correlation = 0.95;    // of tokens, after the last layer
  double gradient = 100;        // largest over smallest variance between layers
  double scores = 3;            // variance of one query's scores, S
  double probabilities = 0.02;  // attention_validity(), up to which its formulas hold
  double features = 32;         // of tokens and of heads, from which they hold
};

namespace detail {

inline std::string three_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", x);
  return text;
}

/// Whether all moments are finite; otherwise the first that are not, in the order of the passes, go
/// into the list.
inline bool warn_of_overflow(const Profile& p, std::vector<Warning>& list) {
  const auto finite = [&](const SignalMoments& m, const char* whose, std::size_t l) {
    const bool of_variance = !std::isfinite(m.variance);
    if (!of_variance && std::isfinite(m.covariance)) return true;
    const std::string place =
        l < p.depth() ? "before layer " + std::to_string(l) : std::string("after the last layer");
    list.push_back({true, std::string("moments overflow: the ") +
                              (of_variance ? "variance" : "covariance") + " of " + whose + " " +
                              place + " is not finite"});
    return false;
  };
  for (std::size_t l = 0; l <= p.depth(); ++l) {
    if (!finite(p.forward_at(l), "activations", l)) return false;
  }
  for (std::size_t l = p.depth() + 1; l-- > 0;) {
    if (!finite(p.gradient_at(l), "gradients", l)) return false;
  }
  return true;
}

inline void warn_of_correlation(const Profile& p, double limit, std::vector<Warning>& list) {
  const double last = p.forward_at(p.depth()).correlation();
  if (!(last > limit)) return;
  list.push_back({true, "rank collapse: tokens have the correlation " + three_digits(last) +
                            " after the last layer; dropout or smaller branches keep them apart"});
}

inline void warn_of_gradients(const Profile& p, double limit, std::vector<Warning>& list) {
  std::size_t least = 0;
  std::size_t most = 0;
  for (std::size_t l = 0; l <= p.depth(); ++l) {
    const double variance = p.gradient_at(l).variance;
    if (variance < p.gradient_at(least).variance) least = l;
    if (variance > p.gradient_at(most).variance) most = l;
  }
  const double ratio = p.gradient_at(most).variance / p.gradient_at(least).variance;
  if (!(ratio >= limit)) return;  // 0/0 where there is no gradient
  list.push_back({true, std::string("gradients ") + (most < least ? "explode" : "vanish") +
                            ": their variance before layer " + std::to_string(most) + " is " +
                            three_digits(ratio) + " times that before layer " +
                            std::to_string(least)});
}

inline void warn_of_scores(double largest, const Attention& attention, const WarningLimits& limits,
                           std::vector<Warning>& list) {
  const double length = attention.length;
  if (largest > limits.scores) {
    list.push_back({true, "queries and keys are too large: scores of one query have the variance " +
                              three_digits(largest) +
                              ", and gradients grow exponentially with it"});
  }
  const double probabilities = std::exp(largest) / length;
  const double needed = tokens_needed(largest) / limits.probabilities;
  if (length > 1 && probabilities * needed > 1) {  // a token alone attends to itself
    const double tokens = std::floor(1 / probabilities);
    list.push_back({false, "the profile is less certain: a token attends to about " +
                               (tokens > 1 ? three_digits(tokens) + " tokens" : "one token") +
                               ", and its formulas hold from " + three_digits(std::ceil(needed)) +
                               "; measure the model (deep_init --measure), or use longer "
                               "sequences or smaller queries and keys"});
  } else if (length > 1 && attention.causal &&
             unequal_under_mask(largest, length) > limits.probabilities) {
    list.push_back(
        {false,
         "the profile is less certain: under the mask the first tokens attend to few, and scores "
         "differ by a variance of " +
             three_digits(largest) +
             "; measure the model (deep_init --measure), or use longer sequences or "
             "smaller queries and keys"});
  }
}

}  // namespace detail

namespace detail {

inline void warn_of_features(const Attention& a, double least, std::vector<Warning>& list) {
  const double features = (std::min)(a.width, a.head_features);
  if (!(a.head_features > 0 && features < least && a.length > 1)) return;
  list.push_back(
      {false, "the profile is less certain: heads or tokens of " + three_digits(features) +
                  " features, and variances of gradients are up to 12 % too low with 16, "
                  "24 % with 8; measure the model (deep_init --measure)"});
}

}  // namespace detail

/// Properties of a profile that make training hard, or the prediction less certain.
/// Source:   rank collapse and large queries and keys: Kedia et al. 2024 (arXiv:2403.09635), 3.3, 3.4.
/// Requires: a profile of both passes.
inline std::vector<Warning> warnings(const Layers& layers, const Profile& p,
                                     const WarningLimits& limits = {}) {
  std::vector<Warning> list;
  if (detail::warn_of_overflow(p, list)) {
    detail::warn_of_correlation(p, limits.correlation, list);
    detail::warn_of_gradients(p, limits.gradient, list);
  }
  if (p.scores.empty()) return list;
  const Attention* attention = nullptr;
  for (const Block& block : layers.blocks) {
    if (const auto* a = std::get_if<Attention>(&block.inner)) attention = a;
  }
  if (attention == nullptr) return list;
  detail::warn_of_scores(*std::max_element(p.scores.begin(), p.scores.end()), *attention, limits,
                         list);
  detail::warn_of_features(*attention, limits.features, list);
  return list;
}

}  // namespace scalewise::propagation
