// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <numbers>
#include <string>

#include "scalewise/architecture/shape.hpp"
#include "scalewise/messages/error.hpp"
#include "scalewise/messages/words.hpp"
#include "scalewise/numeric/number_text.hpp"
#include "scalewise/propagation/dropout.hpp"
#include "scalewise/propagation/moments.hpp"

namespace scalewise::propagation {

/// How the chance that two tokens of a text are the same is found.
enum class Repeats {
  exact,    // Σ p²
  plug_in,  // the mean count of a word in place of its count
  series,   // plug_in with Σ 1/i² = π²/6 and Σ 1/i = 0.58 + ln V
  printed,  // the paper's last line, π²/(6 ln² V)
};

/// Token correlation of a token embedding under Zipf's law.
/// Equation: Σ p_i², p_i = (1/i)/H_V, i = 1 … V, at any length
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1.
/// Units:    length: tokens per sequence, which the paper's forms plug_in and series use.
/// Accuracy: relative 1e-14 for independent tokens of up to 2^20 words, 1e-13 for more.
/// Requires: length >= 2.
/// Throws:   InvalidInput for fewer than one token or more than 2^30.
/// Differs:  the paper puts the mean of a count in for the count, which takes 28 % off at length 256;
///           its last line is 11 % too high (V = 32000).
inline double token_repeats(long vocab, double length, Repeats reading = Repeats::exact) {
  constexpr double pi = std::numbers::pi;
  if (vocab < 1 || vocab > architecture::largest_size) {
    throw InvalidInput("vocab", std::to_string(vocab), "a whole number from 1 to 2^30");
  }
  const double log_vocab = std::log(static_cast<double>(vocab));
  if (reading == Repeats::printed) return pi * pi / 6 / (log_vocab * log_vocab);
  double power = 0;
  if (reading == Repeats::series) {
    power = pi * pi / 6 / ((0.58 + log_vocab) * (0.58 + log_vocab));
  } else {
    // Terms from 2^20 on by the midpoint rule, whose error is below rounding.
    const long direct = vocab < 1L << 20 ? vocab : 1L << 20;
    const double from = static_cast<double>(direct) + 0.5;
    const double to = static_cast<double>(vocab) + 0.5;
    double total = std::log(to / from);
    power = 1 / from - 1 / to;
    for (long i = direct; i >= 1; --i) {
      const double p = 1 / static_cast<double>(i);
      total += p;
      power += p * p;
    }
    power /= total * total;
  }
  return reading == Repeats::exact ? power : (length * power - 1) / (length - 1);
}

/// Token correlation of a segment embedding: of two sentences in one sequence.
/// Equation: 2/3, the first length being uniform on 0 … L; (2L/3 - 1)/(L-1) for plug_in and series
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1, before and after its last simplification.
/// Units:    a correlation; length in tokens
/// Accuracy: exact is exact.
/// Differs:  the paper's unsimplified form belongs to a length that is a real number.
constexpr double segment_repeats(double length, Repeats reading = Repeats::exact) {
  const bool continuous = reading == Repeats::plug_in || reading == Repeats::series;
  return continuous ? (2 * length / 3 - 1) / (length - 1) : 2.0 / 3;
}

/// The same when neither sentence is empty: uniform on 1 … L-1.
/// Equation: (2L-4)/(3(L-1))
/// Source:   derived.
/// Units:    a correlation; length in tokens
/// Accuracy: exact.
constexpr double segment_repeats_of_two(double length) {
  return (2 * length - 4) / (3 * (length - 1));
}

/// The tables that are added, all with the same variance of an entry.
struct Embeddings {
  long vocab = 0;
  double length = 0;  // tokens per sequence
  bool segments = false;
  bool positions = true;
  double dropout = 0;

  constexpr int tables() const { return 1 + (segments ? 1 : 0) + (positions ? 1 : 0); }
};

/// Token correlation of the input of the first layer.
/// Equation: (1-p) times the mean over tables: token_repeats, segment_repeats, 0 of positions
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1, with the dropout that its code applies.
/// Units:    a correlation
/// Accuracy: exact for independent tokens; a measured correlation may take its place anywhere.
/// Throws:   InvalidInput for a size that makes no sequence of tokens, and for what is not a probability below 1.
inline double embedding_correlation(const Embeddings& e, Repeats reading = Repeats::exact) {
  if (e.vocab < 1) throw InvalidInput("vocab", std::to_string(e.vocab), "a positive integer");
  if (!(e.length >= 2))
    throw InvalidInput("length", numeric::number_text(e.length), "2 or more tokens");
  check_dropout("dropout", e.dropout);
  double sum = token_repeats(e.vocab, e.length, reading);
  if (e.segments) sum += segment_repeats(e.length, reading);
  return (1 - e.dropout) * sum / e.tables();
}

/// The moments of the input of the first layer.
/// Equation: var = k sw/(1-p), k tables with entries of variance sw
/// Source:   Kedia et al. 2024 (arXiv:2403.09635), A.1, A.3.
/// Units:    variance: of a table's entries
/// Throws:   InvalidInput as embedding_correlation().
inline SignalMoments embedding(const Embeddings& e, double variance,
                               Repeats reading = Repeats::exact) {
  const double correlation = embedding_correlation(e, reading);  // has checked them
  return correlated(e.tables() * variance / (1 - e.dropout), correlation);
}

}  // namespace scalewise::propagation
