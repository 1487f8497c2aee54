// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "scalewise/data/windows.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/numeric/power.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// Independent tokens whose frequencies fall with their rank as those of words do.
/// Equation: P(token t) = (t+1)^-s / Σ_k k^-s, k = 1 … vocab
/// Source:   Zipf 1949, with an exponent s of one's choice; s = 0 is uniform.
/// Accuracy: the same tokens on every platform with IEEE 754 doubles; probabilities to a
///           relative 1e-12.
/// Throws:   InvalidInput for a vocabulary outside 1 … 2^24 or an exponent outside 0 … 10.
class ZipfSource {
 public:
  ZipfSource(int vocab, double exponent, std::uint64_t seed) : exponent_(exponent), seed_(seed) {
    if (vocab < 1 || vocab > most_tokens) {
      throw InvalidInput("vocab", std::to_string(vocab),
                         "an integer from 1 to " + std::to_string(most_tokens));
    }
    if (!(exponent >= 0 && exponent <= 10)) {
      throw InvalidInput("exponent", numeric::number_text(exponent), "a number from 0 to 10");
    }
    for (int k = 1; k <= vocab; ++k) {
      total_ += numeric::real_power(k, -exponent_);
      cumulative_.push_back(total_);
    }
    for (double& sum : cumulative_) sum /= total_;
  }

  int vocab() const { return static_cast<int>(cumulative_.size()); }

  /// P(token).
  /// Units:    a probability
  /// Requires: 0 <= token < vocab().
  double probability(int token) const {
    return numeric::real_power(token + 1, -exponent_) / total_;
  }

  /// Probability that two tokens are the same.
  /// Equation: Σ p²
  /// Units:    a probability
  double repeat_probability() const {
    return sum_over_tokens([](double p) { return p * p; });
  }

  /// The least loss that a model can reach, in nats per token.
  /// Equation: -Σ p log p
  /// Units:    nats per token
  double entropy() const {
    return sum_over_tokens([](double p) { return p > 0 ? -p * std::log(p) : 0; });
  }

  /// One token.
  int draw(numeric::RandomStream& stream) const {
    const auto found = std::lower_bound(cumulative_.begin(), cumulative_.end(), stream.uniform());
    return static_cast<int>(found - cumulative_.begin());  // the last one is 1
  }

  /// A batch of new tokens; targets are the next ones.
  /// Shapes:   tokens and targets (batch*length)
  /// Throws:   InvalidInput for a size that is not positive.
  template <class Scalar>
  nn::Batch<Scalar> windows(Eigen::Index batch, Eigen::Index length, std::uint64_t step) const {
    detail::require_positive("batch", batch);
    detail::require_positive("length", length);
    numeric::RandomStream stream = detail::step_stream(seed_, step);
    nn::Batch<Scalar> result;
    std::vector<int> window(static_cast<std::size_t>(length) + 1);
    for (Eigen::Index i = 0; i < batch; ++i) {
      for (int& token : window) token = draw(stream);
      detail::append_window(window, 0, length, result);
    }
    return result;
  }

 private:
  static constexpr int most_tokens = 1 << 24;

  template <class F>
  double sum_over_tokens(const F& f) const {
    double sum = 0;
    for (int token = vocab() - 1; token >= 0; --token) sum += f(probability(token));
    return sum;
  }

  double exponent_;
  std::uint64_t seed_;
  double total_ = 0;
  std::vector<double> cumulative_;
};

}  // namespace scalewise::data
