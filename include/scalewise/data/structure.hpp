// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/numeric/random.hpp"

namespace scalewise::data {

/// How much there is to learn from a text.
/// Units:    bits per byte
struct Structure {
  double entropy = 0;      // of single bytes
  double information = 0;  // that a byte has of the next one
};

namespace detail {

inline double entropy(const std::vector<double>& counts, double total) {
  double sum = 0;
  for (const double n : counts) {
    if (n > 0) sum -= n / total * std::log2(n / total);
  }
  return sum;
}

}  // namespace detail

/// Entropy of bytes, and what a byte tells of the next.
/// Equation: H = -Σ p log₂ p; I = H(pairs of a byte and one of anywhere) - H(neighbours). Both terms
///           have the same bias of few counts, which cancels
/// Accuracy: I is below 0.05 for independent bytes, from 10,000 of them on; NaN for fewer than 2.
inline Structure structure_of(std::span<const int> tokens) {
  constexpr std::size_t bytes = 256;
  if (tokens.size() < 2) return {std::nan(""), std::nan("")};
  const std::size_t count = tokens.size() - 1;
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(tokens[i]) % bytes; };
  std::vector<std::size_t> anywhere(count);
  std::iota(anywhere.begin(), anywhere.end(), std::size_t{1});
  numeric::RandomStream stream(1, "structure");
  for (std::size_t i = count; i > 1; --i) {
    std::swap(anywhere[i - 1], anywhere[static_cast<std::size_t>(stream.bits() % i)]);
  }
  std::vector<double> singles(bytes);
  std::vector<double> neighbours(bytes * bytes);
  std::vector<double> strangers(bytes * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    ++singles[byte(i)];
    ++neighbours[byte(i) * bytes + byte(i + 1)];
    ++strangers[byte(i) * bytes + byte(anywhere[i])];
  }
  const auto total = static_cast<double>(count);
  return {detail::entropy(singles, total),
          detail::entropy(strangers, total) - detail::entropy(neighbours, total)};
}

/// The reason why a text is unfit for a check of training; empty when there is none. English has an
/// entropy of 4.4 bits and an information of 1.1; a text of one byte repeated has 0 of both, random
/// bytes have 8 and 0.
inline std::string without_structure(const Structure& s) {
  if (std::isnan(s.entropy)) return "fewer than 2 bytes";
  if (s.entropy < 0.5) return "one byte is almost all there is";
  // Independent bytes stay below 0.05.
  if (s.information < 0.08)
    return "bytes do not depend on the byte before, so nothing can be learned";
  return {};
}

}  // namespace scalewise::data
