// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scalewise/check/estimate.hpp"
#include "scalewise/check/matrix_view.hpp"
#include "scalewise/messages/error.hpp"

namespace scalewise::check {

/// Mean and variance of the entries of an activation, or of a gradient, and the correlation of its
/// tokens.
/// Equation: variance = E (x_tc - mean)²;
///           correlation = E_{t≠u} (x_tc - mean)(x_uc - mean)/variance, t and u tokens of one
///           sequence; averages over sequences, tokens and features
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), Appendix O; the mean is over all entries.
/// Not a number: the correlation of single tokens or of a constant.
struct TokenMoments {
  double mean = 0;
  double variance = 0;
  double correlation = 0;
};

/// The moments of one activation of one network.
/// Shapes:   x (sequences * tokens, features), sequence after sequence
/// Accuracy: sums in double, about the mean.
/// Throws:   InvalidInput when the rows are not a whole number of sequences, or there are none.
template <class Scalar>
TokenMoments token_moments(const MatrixView<Scalar>& x, std::size_t sequences) {
  if (sequences == 0 || x.rows == 0 || x.columns == 0 || x.rows % sequences != 0) {
    throw InvalidInput("activation", std::to_string(x.rows) + " x " + std::to_string(x.columns),
                       "a positive multiple of " + std::to_string(sequences) + " rows");
  }
  const std::size_t tokens = x.rows / sequences;
  const auto size = static_cast<double>(x.rows * x.columns);
  double sum = 0;
  for (std::size_t i = 0; i < x.rows * x.columns; ++i) sum += static_cast<double>(x.data[i]);
  TokenMoments m;
  m.mean = sum / size;
  double squares = 0;
  double products = 0;                       // of all pairs of different tokens: (Σ x)² - Σ x²
  std::vector<double> token_sum(x.columns);  // of one sequence
  for (std::size_t s = 0; s < sequences; ++s) {
    token_sum.assign(x.columns, 0.0);
    double own = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const Scalar* row = x.row(s * tokens + t);
      for (std::size_t c = 0; c < x.columns; ++c) {
        const double centered = static_cast<double>(row[c]) - m.mean;
        token_sum[c] += centered;
        own += centered * centered;
      }
    }
    for (const double total : token_sum) products += total * total;
    products -= own;
    squares += own;
  }
  m.variance = squares / size;
  m.correlation = tokens > 1 && m.variance > 0
                      ? products / (size * static_cast<double>(tokens - 1)) / m.variance
                      : std::numeric_limits<double>::quiet_NaN();
  return m;
}

/// The moments at the places of a network, averaged over networks that differ in their seed.
class MeasuredProfile {
 public:
  struct Estimates {
    Estimate mean, variance, correlation;
  };

  /// One network's moments at one place; places keep the order in which they first come.
  void add(const std::string& place, const TokenMoments& m) {
    const auto [found, fresh] = samples_.try_emplace(place);
    if (fresh) places_.push_back(place);
    found->second.mean.push_back(m.mean);
    found->second.variance.push_back(m.variance);
    found->second.correlation.push_back(m.correlation);
  }

  /// All of another profile, measured on other networks.
  void add(const MeasuredProfile& other) {
    for (const std::string& place : other.places_) {
      const Samples& s = other.samples_.at(place);
      for (std::size_t i = 0; i < s.mean.size(); ++i) {
        add(place, {s.mean[i], s.variance[i], s.correlation[i]});
      }
    }
  }

  const std::vector<std::string>& places() const { return places_; }

  /// Throws:   InvalidInput for a place that was not measured.
  Estimates at(const std::string& place) const {
    const Samples& s = samples(place);
    return {estimate(s.mean), estimate(s.variance), estimate(s.correlation)};
  }

  /// The variances of every network, in the order in which they were added.
  /// Shapes:   (networks)
  /// Units:    variances of entries
  /// Throws:   InvalidInput for a place that was not measured.
  const std::vector<double>& variances(const std::string& place) const {
    return samples(place).variance;
  }

 private:
  struct Samples {
    std::vector<double> mean, variance, correlation;
  };

  const Samples& samples(const std::string& place) const {
    const auto found = samples_.find(place);
    if (found == samples_.end()) throw InvalidInput("place", place, "one that was measured");
    return found->second;
  }

  std::vector<std::string> places_;
  std::map<std::string, Samples> samples_;
};

/// The factor by which a variance grows per layer.
/// Equation: exp of the least-squares slope of log variance against the layer
/// Shapes:   variances (layers)
/// Units:    a factor on a variance, per layer
/// Not a number for fewer than two layers or a variance that is not positive.
inline double growth_per_layer(std::span<const double> variances) {
  const auto n = static_cast<double>(variances.size());
  if (variances.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double slope = 0;
  for (std::size_t l = 0; l < variances.size(); ++l) {
    slope += (static_cast<double>(l) - (n - 1) / 2) * std::log(variances[l]);
  }
  return std::exp(slope / (n * (n * n - 1) / 12));
}

}  // namespace scalewise::check
