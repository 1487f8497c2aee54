// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/random.hpp"

namespace scalewise::data {

namespace detail {

inline void require_positive(const char* field, Eigen::Index value) {
  if (value <= 0) throw InvalidInput(field, std::to_string(value), "a positive integer");
}

/// The stream of a step's draws: a step's numbers do not depend on the steps before it.
inline numeric::RandomStream step_stream(std::uint64_t seed, std::uint64_t step) {
  return {seed, "windows." + std::to_string(step)};
}

/// Adds the window that begins at `start`, with the token after each one as its target.
template <class Scalar>
void append_window(const std::vector<int>& tokens, Eigen::Index start, Eigen::Index length,
                   nn::Batch<Scalar>& batch) {
  const auto begin = tokens.begin() + start;
  batch.tokens.insert(batch.tokens.end(), begin, begin + length);
  batch.targets.insert(batch.targets.end(), begin + 1, begin + 1 + length);
  ++batch.size;
}

}  // namespace detail

/// How many windows of a length follow each other in a text, each with a target for every token.
/// Equation: floor((tokens - 1) / length)
/// Throws:   InvalidInput for a length that is not positive, or when there is no such window.
inline Eigen::Index window_count(const std::vector<int>& tokens, Eigen::Index length) {
  detail::require_positive("length", length);
  const auto size = static_cast<Eigen::Index>(tokens.size());
  if (size <= length) {
    throw InvalidInput("tokens", std::to_string(size),
                       "more than the window length = " + std::to_string(length));
  }
  return (size - 1) / length;
}

/// A training batch: windows that begin anywhere, drawn with replacement; targets are the next
/// tokens.
/// Equation: start = 64 random bits modulo (tokens - length)
/// Shapes:   tokens and targets (batch*length)
/// Accuracy: the same windows on every platform for the same seed and step; starts are equally
///           likely up to (tokens - length) / 2^64.
/// Throws:   InvalidInput for a size that is not positive, or a text with no window of the length.
template <class Scalar>
nn::Batch<Scalar> random_windows(const std::vector<int>& tokens, Eigen::Index batch,
                                 Eigen::Index length, std::uint64_t seed, std::uint64_t step) {
  detail::require_positive("batch", batch);
  window_count(tokens, length);  // refuses what has none
  const std::uint64_t starts = tokens.size() - static_cast<std::uint64_t>(length);
  numeric::RandomStream stream = detail::step_stream(seed, step);
  nn::Batch<Scalar> result;
  for (Eigen::Index i = 0; i < batch; ++i) {
    const auto start = static_cast<Eigen::Index>(stream.bits() % starts);
    detail::append_window(tokens, start, length, result);
  }
  return result;
}

/// A validation batch: consecutive windows that share no target, from window number `first`.
/// Shapes:   tokens and targets (B*length); B is `batch`, or fewer at the end of the text
/// Throws:   InvalidInput for a size that is not positive, and for a first window that is not there.
template <class Scalar>
nn::Batch<Scalar> validation_windows(const std::vector<int>& tokens, Eigen::Index batch,
                                     Eigen::Index length, Eigen::Index first) {
  detail::require_positive("batch", batch);
  const Eigen::Index count = window_count(tokens, length);
  if (first < 0 || first >= count) {
    throw InvalidInput("first", std::to_string(first),
                       "a window in [0, " + std::to_string(count) + ")");
  }
  nn::Batch<Scalar> result;
  for (Eigen::Index i = first; i < count && result.size < batch; ++i) {
    detail::append_window(tokens, i * length, length, result);
  }
  return result;
}

}  // namespace scalewise::data
