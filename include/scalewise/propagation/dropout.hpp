// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/messages/error.hpp"
#include "scalewise/propagation/moments.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::propagation {

/// Dropout that scales what it keeps by 1/(1-p).
/// Equation: mean mu, var = (s + p mu²)/(1-p), cov = c
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.3.
/// Units:    p is the probability that an entry is dropped.
/// Accuracy: exact for masks that are independent from token to token.
/// Requires: 0 <= p < 1.
constexpr SignalMoments dropout(const SignalMoments& x, double p) {
  return {.mean = x.mean,
          .variance = (x.variance + p * x.mean * x.mean) / (1 - p),
          .covariance = x.covariance};
}

/// The gradient that it hands to its input.
/// Equation: var = sg/(1-p), cov = cg
/// Source:   as dropout.
/// Accuracy: exact.
/// Requires: 0 <= p < 1.
constexpr SignalMoments dropout_gradient(const SignalMoments& gradient, double p) {
  return dropout({.variance = gradient.variance, .covariance = gradient.covariance}, p);
}

/// Throws:   InvalidInput for what is not a probability below 1.
constexpr void check_dropout(const char* field, double p) {
  if (p >= 0 && p < 1) return;
  throw InvalidInput(field, numeric::number_text(p), "a probability below 1");
}

}  // namespace scalewise::propagation
