// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
//
// What a trained model has to beat: an interpolated 3-gram.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace scalewise::test {

/// How often each token follows each context of 0, 1 and 2 tokens.
class NgramCounts {
 public:
  static constexpr std::size_t orders = 3;

  explicit NgramCounts(std::span<const int> tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      for (std::size_t n = 0; n < orders && n <= i; ++n) {
        const std::span<const int> context = tokens.subspan(i - n, n);
        ++contexts_[n][key(context)];
        ++followed_[n][key(context, tokens[i])];
      }
    }
  }

  /// Share of `token` after the last n tokens of `before`, for n = 0, 1, 2. After a context that was
  /// never seen, or where there are fewer tokens, it is that of the next shorter one.
  std::array<double, orders> shares(std::span<const int> before, int token) const {
    std::array<double, orders> result{};
    for (std::size_t n = 0; n < orders; ++n) {
      if (n > 0) result[n] = result[n - 1];
      if (n > before.size()) continue;
      const std::span<const int> context = before.last(n);
      const long seen = count(contexts_[n], key(context));
      if (seen == 0) continue;
      const long both = count(followed_[n], key(context, token));
      result[n] = static_cast<double>(both) / static_cast<double>(seen);
    }
    return result;
  }

 private:
  using Table = std::unordered_map<std::uint64_t, long>;

  /// Requires: tokens below 2^20.
  static std::uint64_t key(std::span<const int> context) {
    std::uint64_t result = 0;
    for (const int token : context) result = result << 20U | static_cast<std::uint64_t>(token);
    return result;
  }
  static std::uint64_t key(std::span<const int> context, int token) {
    return key(context) << 20U | static_cast<std::uint64_t>(token);
  }
  static long count(const Table& table, std::uint64_t key) {
    const auto found = table.find(key);
    return found == table.end() ? 0 : found->second;
  }

  std::array<Table, orders> contexts_, followed_;
};

/// A 3-gram with Jelinek-Mercer interpolation: a mixture of the shares after two, one and no tokens
/// and of the uniform distribution.
/// Equation: P(c | a b) = w3 f(c | a b) + w2 f(c | b) + w1 f(c) + w0/vocab
/// Source:   Jelinek, Mercer 1980. The weights are those of greatest likelihood on the last tenth of
///           the training tokens under shares of the rest, found by expectation maximization; the
///           shares are then those of all training tokens.
class Ngram {
 public:
  using Weights = std::array<double, NgramCounts::orders + 1>;  // of the uniform one first

  Ngram(std::span<const int> train, int vocab) : vocab_(vocab), counts_(train) {
    const std::size_t rest = train.size() - train.size() / 10;
    weights_ = fit(NgramCounts(train.first(rest)), train, rest, vocab);
  }

  /// Probability of `token` after the tokens `before`.
  double probability(std::span<const int> before, int token) const {
    return mixture(weights_, parts(counts_, before, token, vocab_));
  }

  /// Mean of -log P over tokens[1] … tokens[count].
  double nats_per_token(std::span<const int> tokens, std::size_t count) const {
    double sum = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      sum -= std::log(probability(tokens.first(i), tokens[i]));
    }
    return sum / static_cast<double>(count);
  }

  const Weights& weights() const { return weights_; }

  /// The four distributions that are mixed, at one token.
  static Weights parts(const NgramCounts& counts, std::span<const int> before, int token,
                       int vocab) {
    const auto shares = counts.shares(before, token);
    Weights result{1.0 / vocab};
    std::copy(shares.begin(), shares.end(), result.begin() + 1);
    return result;
  }

  static double mixture(const Weights& weights, const Weights& parts) {
    double sum = 0;
    for (std::size_t k = 0; k < weights.size(); ++k) sum += weights[k] * parts[k];
    return sum;
  }

  /// Weights of greatest likelihood for tokens[begin] and those behind it.
  /// Accuracy: the mean log-likelihood is within `tolerance` of the greatest: it is concave, so that
  ///           it lies below the tangent, whose greatest value is that of the largest slope.
  static Weights fit(const NgramCounts& counts, std::span<const int> tokens, std::size_t begin,
                     int vocab) {
    std::vector<Weights> held_out;
    for (std::size_t i = begin; i < tokens.size(); ++i) {
      held_out.push_back(parts(counts, tokens.first(i), tokens[i], vocab));
    }
    Weights weights;
    weights.fill(1.0 / static_cast<double>(weights.size()));
    for (;;) {
      Weights slopes{};  // of the mean log-likelihood
      for (const Weights& part : held_out) {
        const double total = mixture(weights, part) * static_cast<double>(held_out.size());
        for (std::size_t k = 0; k < slopes.size(); ++k) slopes[k] += part[k] / total;
      }
      if (*std::max_element(slopes.begin(), slopes.end()) <= 1 + tolerance) return weights;
      for (std::size_t k = 0; k < slopes.size(); ++k) weights[k] *= slopes[k];
    }
  }

  static constexpr double tolerance = 1e-6;

 private:
  int vocab_;
  NgramCounts counts_;
  Weights weights_;
};

}  // namespace scalewise::test
