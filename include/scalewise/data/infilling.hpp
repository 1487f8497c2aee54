// SPDX-FileCopyrightText: The scalewise authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scalewise/messages/error.hpp"
#include "scalewise/nn/batch.hpp"
#include "scalewise/numeric/random.hpp"
#include "scalewise/scaling/formula.hpp"

namespace scalewise::data {

/// The noise of a denoising objective: spans of tokens are cut out, and one mask stands for each. Before, sentences
/// change their places, if it is known which tokens end one; all orders of a window's are equally likely.
/// Source:   Lewis et al. 2020 (arXiv:1910.13461), section 2.2, text infilling and sentence permutation; the numbers are those of
///           section 3.3 and of arXiv:2304.02034, section II 2 A.
/// Units:    `fraction` of the tokens is cut out; span lengths are Poisson numbers of mean `mean_span`, so a
///           span may be empty
/// Differs:  spans never touch, and all sequences of a batch have the same span lengths, each at its own places and in
///           its own order. So sources are equally long, and no padding is needed.
struct Infilling {
  int mask = 0;   // id of the token that stands for a span
  int start = 0;  // id of the token that a decoder begins with
  double fraction = 0.3;
  double mean_span = 3;
  std::span<const int> sentence_ends = {};  // tokens; none: sentences keep their places
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

/// Swaps the first n values of a range, at random.
template <class Iterator>
void shuffle(Iterator first, std::size_t n, numeric::RandomStream& stream) {
  using std::swap;
  for (auto i = static_cast<std::ptrdiff_t>(n); i > 1; --i) {
    swap(first[i - 1], first[static_cast<std::ptrdiff_t>(below(i, stream))]);
  }
}

/// The sentences of some tokens in another order; each ends after the last of some ends in a row.
inline std::vector<int> permuted(const std::vector<int>& tokens, std::span<const int> ends,
                                 numeric::RandomStream& stream) {
  const auto is_end = [&](int token) {
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  };
  std::vector<std::vector<int>> sentences(1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && is_end(tokens[i - 1]) && !is_end(tokens[i])) sentences.emplace_back();
    sentences.back().push_back(tokens[i]);
  }
  shuffle(sentences.begin(), sentences.size(), stream);
  std::vector<int> all;
  for (const std::vector<int>& sentence : sentences)
    all.insert(all.end(), sentence.begin(), sentence.end());
  return all;
}

}  // namespace detail

/// Makes a task of windows: to restore their tokens from a corrupted copy.
/// Equation: source = tokens, sentences permuted, with spans replaced by masks; targets_t = tokens_t; the decoder's tokens are
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
    const auto of_row = windows.targets.begin() + row * length;
    std::vector<int> seen(of_row, of_row + length);
    if (!noise.sentence_ends.empty()) seen = detail::permuted(seen, noise.sentence_ends, stream);
    detail::shuffle(spans.begin(), spans.size(), stream);
    // Each set of spans.size() gaps is equally likely.
    auto token = seen.begin();
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
