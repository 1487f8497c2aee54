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

/// What a profile says against training a model as it is, or against the profile itself.
struct Warning {
  bool serious = true;  // of the model; otherwise of the accuracy of its profile
  std::string text;
};

/// From where on a profile is worth a warning.
struct WarningLimits {
  double correlation = 0.95;    // of tokens, after the last layer
  double gradient = 100;        // largest over smallest variance between layers
  double scores = 3;            // variance of one query's scores, S
  double probabilities = 0.02;  // e^S/L, up to which the formulas of attention hold
};

/// Source:   rank collapse and large queries and keys: Kedia et al. 2024 (arXiv:2403.09635), 3.3, 3.4.
/// Requires: a profile of both passes.
inline std::vector<Warning> warnings(const Layers& layers, const Profile& p,
                                     const WarningLimits& limits = {}) {
  std::vector<Warning> list;
  const auto digits = [](double x) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.3g", x);
    return std::string(text);
  };
  const double last = p.forward_at(p.depth()).correlation();
  if (last > limits.correlation) {
    list.push_back(
        {true, "rank collapse: tokens have the correlation " + digits(last) +
                   " behind the last layer; dropout or smaller branches keep them apart"});
  }
  std::size_t least = 0;
  std::size_t most = 0;
  for (std::size_t l = 0; l <= p.depth(); ++l) {
    const double variance = p.gradient_at(l).variance;
    if (variance < p.gradient_at(least).variance) least = l;
    if (variance > p.gradient_at(most).variance) most = l;
  }
  const double ratio = p.gradient_at(most).variance / p.gradient_at(least).variance;
  if (!(ratio < limits.gradient)) {
    list.push_back({true, std::string("gradients ") + (most < least ? "explode" : "vanish") +
                              ": their variance in front of layer " + std::to_string(most) +
                              " is " + digits(ratio) + " times that in front of layer " +
                              std::to_string(least)});
  }
  const auto largest = std::max_element(p.scores.begin(), p.scores.end());
  if (largest == p.scores.end()) return list;
  if (*largest > limits.scores) {
    list.push_back({true, "queries and keys are too large: scores of one query have the variance " +
                              digits(*largest) + ", and gradients grow exponentially with it"});
  }
  double length = 0;
  for (const Block& block : layers.blocks) {
    if (const auto* a = std::get_if<Attention>(&block.inner)) length = a->length;
  }
  const double probabilities = std::exp(*largest) / length;
  if (probabilities > limits.probabilities) {
    list.push_back({false, "the profile is less sure: e^S/L = " + digits(probabilities) +
                               " where its formulas hold up to " + digits(limits.probabilities)});
  }
  return list;
}

}  // namespace scalewise::propagation
