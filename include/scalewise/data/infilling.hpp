// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// The noise of a denoising objective: spans of tokens are cut out, and one mask stands for each.
/// Source:   Lewis et al. 2020 (arXiv:1910.13461), section 2.2, text infilling; the numbers are those of
///           section 3.3 and of arXiv:2304.02034, section II 2 A.
/// Units:    `fraction` of the tokens is cut out; span lengths are Poisson numbers of mean `mean_span`, so a
///           span may be empty
/// Differs:  spans never touch, and all sequences of a batch have the same span lengths, each at its own places and in
///           its own order. So sources are equally long, and no padding is needed. Sentences are not permuted.
struct Infilling {
  int mask = 0;   // id of the token that stands for a span
  int start = 0;  // id of the token that a decoder begins with
  double fraction = 0.3;
  double mean_span = 3;
};

namespace detail {

/// Throws:   InvalidInput.
inline void check(const Infilling& noise) {
  if (!(noise.fraction > 0 && noise.fraction < 1)) {
    throw InvalidInput("fraction", numeric::number_text(noise.fraction),
                       "a fraction between 0 and 1");
  }
  if (!(noise.mean_span > 0 && noise.mean_span <= 100)) {
    throw InvalidInput("mean_span", numeric::number_text(noise.mean_span), "above 0, at most 100");
  }
}

/// A Poisson number: how many uniform numbers it takes until their product is below e^-mean, less one.
inline Eigen::Index poisson(double mean, numeric::RandomStream& stream) {
  const double limit = std::exp(-mean);
  double product = stream.uniform();
  Eigen::Index count = 0;
  while (product > limit) {
    product *= stream.uniform();
    ++count;
  }
  return count;
}

/// Lengths that add up to `cut`, the last one shortened to fit. There are at most `most`: the last of
/// these takes what is left.
inline std::vector<Eigen::Index> span_lengths(Eigen::Index cut, Eigen::Index most, double mean,
                                              numeric::RandomStream& stream) {
  std::vector<Eigen::Index> lengths;
  for (Eigen::Index left = cut; left > 0; left -= lengths.back()) {
    const bool last = static_cast<Eigen::Index>(lengths.size()) + 1 == most;
    lengths.push_back(last ? left : (std::min)(left, poisson(mean, stream)));
  }
  return lengths;
}

inline std::uint64_t below(Eigen::Index end, numeric::RandomStream& stream) {
  return stream.bits() % static_cast<std::uint64_t>(end);
}

}  // namespace detail

/// Makes a task of windows: to restore their tokens from a corrupted copy.
/// Equation: source = tokens with spans replaced by masks; targets_t = tokens_t; the decoder's tokens are
///           start, tokens_1, …, tokens_(T-1)
/// Shapes:   tokens and targets (B*T), source (B*S), S = T - cut + spans <= T, where cut = fraction·T rounded,
///           but at least 1 and at most T - 1
/// Accuracy: places are equally likely up to T / 2^64
/// Throws:   InvalidInput for numbers out of range, and windows of fewer than two tokens.
template <class Scalar>
nn::Batch<Scalar> infilling(nn::Batch<Scalar> windows, const Infilling& noise,
                            numeric::RandomStream stream) {
  using Index = Eigen::Index;
  detail::check(noise);
  const Index length =
      windows.size > 0 ? static_cast<Index>(windows.tokens.size()) / windows.size : 0;
  if (length < 2) throw InvalidInput("length", std::to_string(length), "2 or more tokens to mask");
  const auto wanted = static_cast<Index>(std::lround(noise.fraction * static_cast<double>(length)));
  const Index cut = std::clamp<Index>(wanted, 1, length - 1);
  const Index gaps = length - cut + 1;  // around the tokens that stay
  std::vector<Index> spans =
      detail::span_lengths(cut, (std::min)(cut, gaps), noise.mean_span, stream);
  windows.targets = windows.tokens;
  windows.source.clear();
  for (Index row = 0; row < windows.size; ++row) {
    for (std::size_t i = spans.size(); i > 1; --i) {
      std::swap(spans[i - 1], spans[detail::below(static_cast<Index>(i), stream)]);
    }
    // Each set of spans.size() gaps is equally likely.
    auto token = windows.targets.begin() + row * length;
    auto span = spans.begin();
    for (Index gap = 0; gap < gaps; ++gap) {
      if (detail::below(gaps - gap, stream) < static_cast<std::uint64_t>(spans.end() - span)) {
        windows.source.push_back(noise.mask);
        token += *span++;
      }
      if (gap + 1 < gaps) windows.source.push_back(*token++);
    }
    const auto first = windows.tokens.begin() + row * length;
    std::copy_backward(first, first + length - 1, first + length);
    *first = noise.start;
  }
  return windows;
}

}  // namespace scalewise::data
