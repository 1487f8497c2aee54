// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include "scalewise/core/error.hpp"
#include "scalewise/core/print.hpp"
#include "scalewise/theory/moments.hpp"

namespace scalewise::theory {

/// Dropout that scales what it keeps by 1/(1-p).
/// Equation: mean mu, var = (s + p mu²)/(1-p), cov = c
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.3.
/// Units:    p is the probability that an entry is dropped.
/// Accuracy: exact for masks that are independent from token to token.
/// Requires: 0 <= p < 1.
constexpr Moments dropout(const Moments& x, double p) {
  return {.mean = x.mean,
          .variance = (x.variance + p * x.mean * x.mean) / (1 - p),
          .covariance = x.covariance};
}

/// The gradient that it hands to its input.
/// Equation: var = sg/(1-p), cov = cg
/// Source:   as dropout.
/// Accuracy: exact.
/// Requires: 0 <= p < 1.
constexpr Moments dropout_gradient(const Moments& gradient, double p) {
  return dropout({.variance = gradient.variance, .covariance = gradient.covariance}, p);
}

/// Throws:   InvalidInput for what is no probability below 1.
constexpr void check_dropout(const char* field, double p) {
  if (p >= 0 && p < 1) return;
  throw InvalidInput(field, number_text(p), "a probability below 1");
}

}  // namespace scalewise::theory
