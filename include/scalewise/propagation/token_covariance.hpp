// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "scalewise/propagation/moments.hpp"

namespace scalewise::propagation {

/// Second moments of an activation, or of a gradient, of mean zero, token by token.
/// Source:   derived: moments of Kedia et al. 2024 (arXiv:2403.09635), not averaged over pairs.
/// Shapes:   (L, L), symmetric; the diagonal holds variances, the rest covariances in one feature
class TokenCovariance {
 public:
  explicit TokenCovariance(std::size_t tokens = 0) : tokens_(tokens), entries_(tokens * tokens) {}

  /// The same moments for every token and pair.
  TokenCovariance(std::size_t tokens, const SignalMoments& m) : TokenCovariance(tokens) {
    for (double& entry : entries_) entry = m.covariance;
    for (std::size_t t = 0; t < tokens; ++t) at(t, t) = m.variance;
  }

  std::size_t tokens() const { return tokens_; }
  double& at(std::size_t t, std::size_t u) { return entries_[t * tokens_ + u]; }
  double at(std::size_t t, std::size_t u) const { return entries_[t * tokens_ + u]; }

  /// Averages over tokens, and over pairs of different ones.
  SignalMoments mean() const {
    double own = 0;
    double all = 0;
    for (std::size_t t = 0; t < tokens_; ++t) own += at(t, t);
    for (const double entry : entries_) all += entry;
    const auto n = static_cast<double>(tokens_);
    return {.variance = own / n, .covariance = tokens_ > 1 ? (all - own) / (n * (n - 1)) : 0};
  }

 private:
  std::size_t tokens_;
  std::vector<double> entries_;
};

}  // namespace scalewise::propagation
